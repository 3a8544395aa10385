//! The bare limits of this machine, each measured with as little code around it as possible.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rocksdb::{ColumnFamilyDescriptor, DB, DBCompressionType, Options, WriteBatch, WriteOptions};
use treepie::script::{Limits, MapInput, Program, Runner, STACK_BYTES, Texts};
use treepie::store::document::Document;

use crate::Result;
use crate::workload::{COLLECTION, Order, Orders, Script};

const FAMILIES: [&str; 3] = ["documents", "changes", "collections"];
/// Bytes of a record beside the JSON: id, change vector, collection, times.
const HEADER: [u8; 72] = [7; 72];

/// Documents a second into bare RocksDB: for each a look-up of the former version and three rows of the same bytes, in synced batches.
pub(crate) fn write_batches(directory: &Path, orders: &Orders) -> Result<f64> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_compression_type(DBCompressionType::Lz4);
    let families = FAMILIES.map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
    let database = DB::open_cf_descriptors(&options, directory, families)?;
    let seconds = write_all(&database, orders)?;
    drop(database);
    // What is still to be flushed of it must not disturb what is measured next.
    std::fs::remove_dir_all(directory)?;
    Ok(orders.len() as f64 / seconds)
}

fn write_all(database: &DB, orders: &Orders) -> Result<f64> {
    let family = |name: &str| database.cf_handle(name).ok_or_else(|| format!("no family {name}"));
    let [documents, changes, collections] = [family(FAMILIES[0])?, family(FAMILIES[1])?, family(FAMILIES[2])?];
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    let mut etag = 0_u64;
    let start = Instant::now();
    for orders in orders.batches() {
        let mut batch = WriteBatch::default();
        for order in orders {
            etag += 1;
            if database.get_pinned_cf(&documents, &order.id)?.is_some() {
                return Err(format!("{} came twice", order.id).into());
            }
            batch.put_cf(&documents, &order.id, [&HEADER, order.body.as_bytes()].concat());
            batch.put_cf(&changes, etag.to_be_bytes(), [&[0], order.id.as_bytes(), COLLECTION.as_bytes()].concat());
            batch.put_cf(
                &collections,
                [&[0, 0, 0, 1], etag.to_be_bytes().as_slice()].concat(),
                [&[0], order.id.as_bytes()].concat(),
            );
        }
        database.write_opt(batch, &synced)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Documents a second through parsing and the map function alone, on all cores.
pub(crate) fn parse_and_map(orders: &Orders, script: &Script) -> Result<f64> {
    let texts = Texts { maps: vec![script.text.clone()], reduce: None };
    let program = Arc::new(Program::compile(texts, Limits::default())?);
    let cores = std::thread::available_parallelism()?.get();
    let jsons: Vec<(&Order, String)> = orders.iter().map(|order| (order, order.with_metadata())).collect();
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for share in jsons.chunks(jsons.len().div_ceil(cores).max(1)) {
            let program = Arc::clone(&program);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            threads.push(thread.spawn_scoped(scope, move || map_all(program, share))?);
        }
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a mapping thread panicked")?)
    })?;
    Ok(orders.len() as f64 / start.elapsed().as_secs_f64())
}

fn map_all(program: Arc<Program>, share: &[(&Order, String)]) -> Result<()> {
    let mut runner = Runner::new(program, Arc::new(AtomicBool::new(false)))?;
    for (order, json) in share {
        let document = Document::parse(json.as_bytes())?.document;
        let input =
            MapInput { id: &order.id, collection: COLLECTION, metadata: &document.metadata, body: &document.body };
        if std::hint::black_box(runner.map(0, &input)?).is_empty() {
            return Err(format!("{} emitted nothing", order.id).into());
        }
    }
    Ok(())
}

/// Milliseconds of one small write and its fdatasync, for each of `count`.
pub(crate) fn synced_writes(path: &Path, count: usize) -> Result<Vec<f64>> {
    let mut file = File::create(path)?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        file.write_all(&[7; 600])?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}
