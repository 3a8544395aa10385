//! Who gets in, by API keys and client certificates, and who does not.

use std::net::SocketAddr;
use std::path::Path;

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use treepie::access::{AccessFile, ApiKey, Certificate, Credential, Issuer, Kind};
use treepie::client::{DocumentStore, StoreSettings};
use treepie::database::DatabaseSettings;
use treepie::server::{Server, ServerSettings, TlsFiles};

use crate::support::{Answer, TestServer};

fn credential(name: &str, allow: &str) -> (Credential, ApiKey) {
    let key = ApiKey::new().unwrap();
    let credential = Credential {
        name: name.to_owned(),
        kind: Kind::Key,
        digest: key.digest(),
        allow: allow.parse().unwrap(),
        created: Timestamp::now(),
        begins: None,
        expires: None,
    };
    (credential, key)
}

fn add_key(data: &Path, name: &str, allow: &str) -> String {
    let (credential, key) = credential(name, allow);
    AccessFile::change(data, |file| file.add(credential)).unwrap();
    key.expose().to_owned()
}

async fn send(server: &TestServer, key: &str, method: &str, path: &str, body: &str) -> Answer {
    let request = server.request(method.parse().unwrap(), path).bearer_auth(key).body(body.to_owned());
    Answer::read(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_it_permits_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let admin = add_key(data, "admin", "*=admin");
    let (read, write) = (add_key(data, "reader", "main=read"), add_key(data, "writer", "main=write,logs=read"));
    let server = TestServer::start_on(data, |_| {}).await;
    for name in ["main", "logs"] {
        let created = send(&server, &admin, "PUT", &format!("/admin/databases?name={name}"), "{}").await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    }
    let ok = [200, 201, 204, 404];
    for (key, method, path, body, status) in [
        (&read, "GET", "/databases/main/docs?id=a", "", 404),
        (&read, "POST", "/databases/main/docs", r#"{"Ids":["a"]}"#, 200),
        (&read, "PUT", "/databases/main/docs?id=a", "{}", 403),
        (&read, "GET", "/databases/logs/docs?id=a", "", 403),
        (&read, "GET", "/databases/main/hilo/next?tag=users", "", 403),
        (&read, "GET", "/topology?name=main", "", 200),
        (&read, "GET", "/databases/main", "", 200),
        (&write, "DELETE", "/databases/main", "", 403),
        (&write, "PUT", "/databases/more", "", 403),
        (&read, "POST", "/databases/main/_all_docs", r#"{"keys":["a"]}"#, 200),
        (&read, "PUT", "/databases/main/subscriptions", r#"{"Query":"from Users"}"#, 403),
        (&read, "GET", "/databases/main/subscriptions/stream?name=s", "", 403),
        (&read, "GET", "/topology?name=logs", "", 403),
        (&read, "GET", "/metrics", "", 403),
        (&write, "PUT", "/databases/main/docs?id=a", "{}", 201),
        (&write, "PUT", "/databases/LOGS/docs?id=a", "{}", 403),
        (&write, "GET", "/databases/logs/docs?startsWith=", "", 200),
        (
            &write,
            "PUT",
            "/databases/main/indexes/ix",
            "source(\"A\"); fn map(d) { emit(1, 1); } fn reduce(k, v) { v.count() }",
            403,
        ),
        (&write, "POST", "/databases/main/admin/backup", "", 403),
        (&write, "PUT", "/admin/databases?name=more", "{}", 403),
        (&admin, "GET", "/metrics", "", 200),
        (
            &admin,
            "PUT",
            "/databases/main/indexes/ix",
            "source(\"A\"); fn map(d) { emit(1, 1); } fn reduce(k, v) { v.count() }",
            201,
        ),
    ] {
        let answer = send(&server, key, method, path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.text());
        if !ok.contains(&status) {
            answer.assert_error(403, "AuthorizationException", &["level"]);
        }
    }
    let names = send(&server, &read, "GET", "/databases?namesOnly=true", "").await.json();
    assert_eq!(names, json!({"Databases": ["main"]}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_inside_of_a_request_may_do_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let admin = add_key(data, "admin", "*=admin");
    let read = add_key(data, "reader", "main=read");
    let server = TestServer::start_on(data, |_| {}).await;
    for name in ["main", "secret"] {
        send(&server, &admin, "PUT", &format!("/admin/databases?name={name}"), "{}").await;
    }
    for (url, status) in
        [("/databases/main/docs", 200), ("/databases/secret/docs", 403), ("/databases/s%65cret/docs", 403)]
    {
        let body = json!({"Requests": [{"Url": url, "Query": "?id=a"}]}).to_string();
        let answer = send(&server, &read, "POST", "/databases/main/multi_get", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{url}: {}", answer.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_told_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let key = add_key(data, "admin", "*=admin");
    let (mut expired, old_key) = credential("old", "*=admin");
    expired.expires = Some(Timestamp::UNIX_EPOCH);
    AccessFile::change(data, |file| file.add(expired)).unwrap();
    let server = TestServer::start_on(data, |_| {}).await;
    for path in ["/databases", "/databases/main/docs?id=a", "/metrics", "/nowhere", "/build/version"] {
        server.get(path).await.assert_error(401, "AuthorizationException", &["has none", "Bearer"]);
        send(&server, "treepie_wrong", "GET", path, "").await.assert_error(
            401,
            "AuthorizationException",
            &["not known"],
        );
        send(&server, old_key.expose(), "GET", path, "").await.assert_error(
            401,
            "AuthorizationException",
            &["expired"],
        );
    }
    assert!(server.get("/databases").await.header("www-authenticate").unwrap().contains("Bearer"));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).await.status, StatusCode::OK);
    }
    let request = server.request(Method::GET, "/databases").basic_auth("anyone", Some(&key));
    assert_eq!(request.send().await.unwrap().status(), StatusCode::OK, "CouchDB's clients send a name and a password");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_credentials_count_while_the_server_runs() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = TestServer::start_on(data, |_| {}).await;
    assert_eq!(
        server.get("/databases").await.status,
        StatusCode::OK,
        "without a file everyone on the loopback gets in"
    );
    let until = async |key: Option<&str>, status: StatusCode| loop {
        let mut request = server.request(Method::GET, "/databases");
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if request.send().await.unwrap().status() == status {
            break;
        }
        tokio::task::yield_now().await;
    };
    let key = add_key(data, "first", "*=admin");
    until(None, StatusCode::UNAUTHORIZED).await;
    until(Some(&key), StatusCode::OK).await;
    AccessFile::change(data, |file| Ok(file.remove(Kind::Key, "FIRST"))).unwrap();
    until(Some(&key), StatusCode::UNAUTHORIZED).await;
    let key = add_key(data, "second", "*=admin");
    until(Some(&key), StatusCode::OK).await;
    std::fs::remove_file(AccessFile::path(data)).unwrap();
    until(Some(&key), StatusCode::UNAUTHORIZED).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_not_opened_to_a_network_by_accident() {
    let bind = async |data: &Path, change: &dyn Fn(&mut ServerSettings)| {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut settings = ServerSettings::new(data.to_owned(), everywhere, DatabaseSettings::default());
        change(&mut settings);
        Server::bind(settings).await.map(|_| ()).map_err(|error| error.to_string())
    };
    let (open, keyed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    add_key(keyed.path(), "admin", "*=admin");
    let refused = bind(open.path(), &|_| {}).await.unwrap_err();
    assert!(refused.contains("--anyone-may-read-and-write-everything"), "{refused}");
    bind(open.path(), &|settings| settings.exposure.open_to_everyone = true).await.unwrap();
    let refused = bind(keyed.path(), &|_| {}).await.unwrap_err();
    assert!(refused.contains("--keys-may-travel-in-plain-text"), "{refused}");
    bind(keyed.path(), &|settings| settings.exposure.plain_text = true).await.unwrap();
    let files = certify(keyed.path(), &Issuer::new(1).unwrap().0);
    bind(keyed.path(), &|settings| settings.tls = Some(files.clone())).await.unwrap();
}

fn certify(directory: &Path, issuer: &Issuer) -> TlsFiles {
    let issued = issuer.server(&["127.0.0.1".to_owned()], 1).unwrap();
    let files = TlsFiles { certificate: directory.join("server.pem"), key: directory.join("server.key") };
    std::fs::write(&files.key, issued.key).unwrap();
    std::fs::write(&files.certificate, issued.certificate).unwrap();
    files
}

fn client(issuer: &str) -> reqwest::ClientBuilder {
    let issuer = reqwest::Certificate::from_pem(issuer.as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().use_rustls_tls().add_root_certificate(issuer).tls_info(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_opens_what_it_permits() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let (issuer, own) = Issuer::new(1).unwrap();
    let files = certify(data, &issuer);
    let mut identities = Vec::new();
    for (name, is_known) in [("app", true), ("stranger", false)] {
        let issued = issuer.client(name, 1).unwrap();
        let pem = format!("{}{}", issued.certificate, issued.key);
        if is_known {
            let Certificate { digest, begins, expires } = Certificate::read(pem.as_bytes()).unwrap();
            let credential = Credential {
                kind: Kind::Certificate,
                digest,
                begins: Some(begins),
                expires: Some(expires),
                ..credential(name, "*=admin").0
            };
            AccessFile::change(data, |file| file.add(credential)).unwrap();
        }
        identities.push(reqwest::Identity::from_pem(pem.as_bytes()).unwrap());
    }
    let server = TestServer::start_as(data, |settings| settings.tls = Some(files)).await;
    let url = format!("https://{}/databases", server.address);
    let stranger = identities.pop().unwrap();
    let app = client(&own.certificate).identity(identities.pop().unwrap()).build().unwrap();
    assert_eq!(app.get(&url).send().await.unwrap().status(), StatusCode::OK);
    for client in [client(&own.certificate).identity(stranger), client(&own.certificate)] {
        let answer = client.build().unwrap().get(&url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    let topology = app.get(format!("https://{}/cluster/topology", server.address)).send().await.unwrap();
    let topology: serde_json::Value = topology.json().await.unwrap();
    assert_eq!(topology["Topology"]["Members"]["A"], json!(format!("https://{}", server.address)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_over_tcp_is_not_opened_for_a_stranger() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let admin = add_key(data, "admin", "*=admin");
    let reader = add_key(data, "reader", "main=read");
    let server = TestServer::start_on(data, |_| {}).await;
    for name in ["main", "logs"] {
        send(&server, &admin, "PUT", &format!("/admin/databases?name={name}"), "{}").await;
    }
    let listed = send(&server, &reader, "GET", "/databases/_all_dbs", "").await;
    assert_eq!(listed.json(), json!(["main"]));
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let header = json!({ "DatabaseName": "main", "Operation": "Subscription", "OperationVersion": 53_000 });
    stream.write_all(header.to_string().as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["Status"], "AuthorizationFailed");
    assert!(said["Message"].as_str().unwrap().contains("needs credentials"), "{said}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_text_on_a_tls_port_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let files = certify(directory.path(), &Issuer::new(1).unwrap().0);
    let server = TestServer::start_as(directory.path(), |settings| settings.tls = Some(files)).await;
    let answer = server.get("/databases").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text().contains("https://"), "{}", answer.text());
    // One that connects and says nothing holds the end up no longer than others.
    let silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    server.stop().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let (issuer, own) = Issuer::new(1).unwrap();
    let files = certify(data, &issuer);
    let server = TestServer::start_as(data, |settings| settings.tls = Some(files.clone())).await;
    let url = format!("https://{}/healthz", server.address);
    let shown = async || {
        let answer = client(&own.certificate).build().unwrap().get(&url).send().await.unwrap();
        answer.extensions().get::<reqwest::tls::TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
    };
    let before = shown().await;
    certify(data, &issuer);
    while shown().await == before {
        tokio::task::yield_now().await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_client_shows_its_key_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let key = add_key(data, "admin", "*=admin");
    let (issuer, own) = Issuer::new(1).unwrap();
    let files = certify(data, &issuer);
    let server = TestServer::start_as(data, |settings| settings.tls = Some(files)).await;
    let mut settings = StoreSettings::default();
    settings.credentials.issuer = Some(own.certificate.into_bytes());
    let urls = [format!("https://{}", server.address)];
    let stranger = DocumentStore::with_settings(&urls, "main", settings.clone()).unwrap();
    let refused = stranger.databases().list().await.unwrap_err();
    assert!(refused.to_string().contains("needs credentials"), "{refused}");
    settings.credentials.api_key = Some(key.clone());
    assert!(!format!("{settings:?}").contains(&key));
    let store = DocumentStore::with_settings(&urls, "main", settings).unwrap();
    store.databases().create("main").await.unwrap();
    assert_eq!(store.identities().next("users|").await.unwrap(), 1);
    server.stop().await;
}
