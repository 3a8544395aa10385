//! The flights that left New York in January 2013, from the committed file to two levels of artificial documents.
//!
//! The expected numbers were counted from the file by other means.

use serde_json::{Value, json};

use crate::program::{Server, TREEPIE};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/flights");

fn carrier(documents: &[Value], carrier: &str) -> Value {
    let found = documents.iter().find(|document| document["Carrier"] == carrier).unwrap();
    json!([found["Flights"], found["DelaysKnown"], found["ArrivalDelay"], found["Distance"]])
}

#[test]
fn january_adds_up_on_both_levels() {
    assert!(!TREEPIE.is_empty());
    let server = Server::start();
    let file = format!("{EXAMPLES}/flights-2013-01.csv.gz");
    let id = "flights/{year}-{month}-{day}/{carrier}{flight}/{origin}";
    let loaded = server.run(&["load", &file, "--collection", "Flights", "--null", "NA", "--id", id]).json();
    assert_eq!(loaded[0]["documents"], 27_004);
    for index in ["CarrierMonths", "CarrierYears"] {
        server.run(&["index", "put", &format!("{EXAMPLES}/{index}.rhai")]).json();
    }
    server.run(&["index", "status", "--wait"]).json();
    let months = server.run(&["list", "--collection", "CarrierMonths"]).json();
    let years = server.run(&["list", "--collection", "CarrierYears"]).json();
    assert_eq!((months.len(), years.len()), (16, 16));
    let united = json!([4_637, 4_590, 14_576, 6_777_189]);
    assert_eq!((carrier(&months, "UA"), carrier(&years, "UA")), (united.clone(), united));
    let flights =
        |documents: &[Value]| documents.iter().map(|document| document["Flights"].as_u64().unwrap()).sum::<u64>();
    assert_eq!((flights(&months), flights(&years)), (27_004, 27_004));

    // One flight less is one flight less on both levels.
    server.run(&["delete", "flights/2013-1-1/UA1545/EWR"]).json();
    server.run(&["index", "status", "--wait"]).json();
    let years = server.run(&["list", "--collection", "CarrierYears"]).json();
    assert_eq!(carrier(&years, "UA"), json!([4_636, 4_589, 14_565, 6_775_789]));
}
