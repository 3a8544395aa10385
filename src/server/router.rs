//! The routes: every path of the interface and the handler behind it.
//!
//! Index names may hold `/`, percent-encoded, which the router leaves alone until a segment has matched.
//!
//! Next on the walk: `registry`.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, StatusCode, Version};
use axum::middleware;
use axum::routing::{MethodRouter, get, patch, post, put};
use axum::{Extension, Router};
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

use super::host::Host;
use super::multi_get::Reads;
use super::stream::Live;
use super::{
    backups, bulk, bulk_insert, changes, collections, configuration, couch, databases, delete_by_query, documents,
    explain, hilo, identity, index_operations, index_reports, index_results, index_test, indexes, json_patch, metrics,
    multi_get, node, observe, operations, progress, queries, stats, streams, subscriptions, tombstones, transfer,
    unsupported, verify_index,
};

/// Answers with fewer bytes are sent as they are.
const COMPRESSED_BYTES_MIN: u64 = 1_024;

/// The state that handlers get.
pub(crate) type Shared = Arc<Host>;

/// Makes the router of a server.
pub(crate) fn router(host: Shared) -> Router {
    Router::new()
        .route("/build/version", get(node::build_version))
        .route("/healthz", get(node::healthz))
        .route("/readyz", get(node::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/topology", get(node::topology))
        .route("/cluster/topology", get(node::cluster_topology))
        .route("/cluster/node-info", get(node::node_info))
        .route("/configuration/client", get(configuration::server_wide))
        .route("/admin/configuration/client", put(configuration::put_server_wide))
        .route("/info/tcp", get(subscriptions::manage::tcp_info))
        .route("/info/remote-task/tcp", get(subscriptions::manage::tcp_info))
        .route("/databases", get(databases::list))
        .route("/admin/databases", get(databases::record).put(databases::create).delete(databases::delete))
        .route("/admin/backups", get(backups::list_all))
        .route("/admin/restore", post(backups::restore))
        .route("/databases/_all_dbs", get(couch::list))
        .route("/databases/{db}", get(couch::info).put(couch::create).delete(couch::delete))
        .nest("/databases/{db}", database_routes())
        .fallback(unsupported::refuse)
        .method_not_allowed_fallback(unsupported::refuse)
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(Extension(Reads::new(&host)))
        .layer(middleware::from_fn_with_state(Arc::clone(&host), observe::observe))
        .layer(compression())
        .with_state(host)
}

/// Compresses what callers want compressed and is worth it. The least level: a server's time is for its documents.
fn compression() -> CompressionLayer<impl Predicate> {
    let is_at_rest =
        |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| extensions.get::<Live>().is_none();
    CompressionLayer::new()
        .gzip(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESSED_BYTES_MIN).and(is_at_rest))
}

fn database_routes() -> Router<Shared> {
    Router::new()
        .route(
            "/docs",
            get(documents::get)
                .head(documents::head)
                .put(documents::put)
                .delete(documents::delete)
                .post(documents::get_many),
        )
        .route("/json-patch", patch(json_patch::run))
        .route("/bulk_docs", post(bulk::run))
        .route("/bulk_insert", post(bulk_insert::run))
        .route("/multi_get", post(multi_get::run))
        .route("/streams/docs", get(streams::documents))
        .route(
            "/queries",
            get(queries::get).post(queries::post).delete(delete_by_query::run).patch(queries::refuse_patch),
        )
        .route("/streams/queries", get(queries::stream_get).post(queries::stream_post))
        .route("/operations/next-operation-id", get(operations::next_id))
        .route("/operations/state", get(operations::state))
        .route("/operations/kill", post(operations::kill))
        .route("/collections/stats", get(collections::stats))
        .route("/collections/stats/detailed", get(collections::stats_detailed))
        .route("/collections/docs", get(collections::documents))
        .route("/stats", get(stats::stats))
        .route("/stats/essential", get(stats::stats))
        .route("/stats/detailed", get(stats::detailed))
        .merge(index_routes())
        .route("/explain", get(explain::run))
        .route("/hilo/next", get(hilo::next))
        .route("/hilo/return", put(hilo::give_back))
        .route("/identity/next", post(identity::next))
        .route("/identity/seed", post(identity::seed))
        .route("/debug/identities", get(identity::list))
        .route("/changes", get(changes::open))
        .route("/_changes", get(couch::changes).post(couch::post_changes))
        .route("/_all_docs", get(couch::all_docs).post(couch::post_all_docs))
        .merge(subscription_routes())
        .merge(admin_routes())
        .route("/configuration/client", get(configuration::client))
        .route("/export", get(transfer::export))
        .route("/import", post(transfer::import))
        .route("/healthcheck", get(node::database_health))
}

fn index_routes() -> Router<Shared> {
    Router::new()
        .route(
            "/indexes",
            get(indexes::list).put(indexes::put_definitions).delete(indexes::delete).fallback(index_operations::reset),
        )
        .route("/indexes/has-changed", named().post(index_operations::has_changed))
        .route("/indexes/set-lock", named().post(index_operations::set_lock))
        .route("/indexes/set-priority", named().post(index_operations::set_priority))
        .route("/admin/indexes", put(indexes::put_definitions))
        .route("/admin/indexes/enable", post(index_operations::enable))
        .route("/admin/indexes/disable", post(index_operations::disable))
        .route("/admin/indexes/start", post(index_operations::start))
        .route("/admin/indexes/stop", post(index_operations::stop))
        .route("/indexes/stats", named().get(index_reports::stats))
        .route("/indexes/replace", named().post(index_operations::replace))
        .route("/indexes/rollback", named().post(index_operations::roll_back))
        .route(
            "/indexes/errors",
            put(indexes::put_script).delete(index_operations::clear_errors).get(index_reports::errors),
        )
        .route("/indexes/status", named().get(index_reports::status))
        .route("/indexes/staleness", named().get(index_reports::staleness))
        .route("/indexes/progress", named().get(progress::progress))
        .route("/indexes/test", named().post(index_test::run))
        .route("/indexes/verify", named().get(verify_index::report).post(verify_index::repair))
        .route("/indexes/{name}", named().get(indexes::show))
        .route("/indexes/{name}/results", get(index_results::get).post(index_results::post))
}

fn admin_routes() -> Router<Shared> {
    Router::new()
        .route("/admin/record", get(databases::record_of))
        .route("/admin/backup", get(backups::list).post(backups::take))
        .route("/admin/configuration/client", put(configuration::put_client))
        .route("/admin/configuration/settings", get(configuration::settings).put(configuration::put_settings))
        .route("/admin/tombstones/cleanup", post(tombstones::clean_up))
        .route("/admin/tombstones/state", get(tombstones::state))
}

fn subscription_routes() -> Router<Shared> {
    use subscriptions::{manage, stream};

    Router::new()
        .route("/subscriptions", get(manage::list).put(manage::put).delete(manage::delete))
        .route("/subscriptions/update", post(manage::update))
        .route("/subscriptions/state", get(manage::state))
        .route("/subscriptions/drop", post(manage::drop_connection))
        .route("/subscriptions/faults", get(manage::faults))
        .route("/subscriptions/stream", get(stream::stream))
        .route("/subscriptions/ack", post(stream::acknowledge))
        .route("/admin/tasks/state", post(manage::set_task_state))
        .route("/task", get(manage::task))
        .route("/info/tcp", get(manage::tcp_info_of))
}

/// What can be done with an index whose name is the path's last segment; also with one named `stats`. (One named `errors` is deleted by
/// `DELETE …/indexes?name=errors`.)
fn named() -> MethodRouter<Shared> {
    put(indexes::put_script).delete(indexes::delete_named)
}
