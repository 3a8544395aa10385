//! Deliveries as text: RavenDB's messages, and the lines of the HTTP forms.

use crate::server::wire::text::{write_number, write_string};
use crate::store::collections::EMPTY;
use crate::subscription::{Delivery, News, Shaped};

/// Appends RavenDB's message. What RavenDB does not know stands in the document's metadata: `@deleted`, `@run`,
/// `@complete-through`, `@previous`.
pub(super) fn write_message(delivery: &Delivery, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"Type\":\"Data\",\"Data\":");
    match &delivery.news {
        News::Written(shaped) => write_shaped(shaped, into, |into| write_more(delivery, into)),
        // What failed is not shown: a client that reads it all the same would take it for the result.
        News::Failed(document, _) => document.write_json_as("{}", into, |_| {}),
        News::Deleted => write_deleted(delivery, into),
    }
    into.extend_from_slice(b",\"Exception\":");
    match &delivery.news {
        News::Failed(_, fault) => write_string(fault, into),
        News::Written(_) | News::Deleted => into.extend_from_slice(b"null"),
    }
    into.push(b'}');
}

/// Appends one line of the HTTP forms, without its end. It holds no line break.
pub(super) fn write_line(delivery: &Delivery, into: &mut Vec<u8>) {
    let begun = into.len();
    into.extend_from_slice(b"{\"Type\":\"Data\",\"Etag\":");
    write_number(delivery.etag, into);
    into.extend_from_slice(b",\"ChangeVector\":");
    write_string(&delivery.change_vector, into);
    into.extend_from_slice(b",\"Id\":");
    write_string(&delivery.id, into);
    into.extend_from_slice(b",\"Collection\":");
    write_string(&delivery.collection, into);
    if let Some(run) = delivery.run {
        into.extend_from_slice(b",\"Run\":");
        write_number(run.number, into);
        into.extend_from_slice(b",\"CompleteThrough\":");
        write_optional(run.complete_through, into);
    }
    match &delivery.news {
        News::Written(shaped) => {
            into.extend_from_slice(b",\"Document\":");
            write_shaped(shaped, into, |_| {});
        }
        News::Deleted => into.extend_from_slice(b",\"Deleted\":true"),
        News::Failed(_, fault) => {
            into.extend_from_slice(b",\"Exception\":");
            write_string(fault, into);
        }
    }
    if let Some(previous) = &delivery.previous {
        into.extend_from_slice(b",\"Previous\":");
        write_shaped(previous, into, |_| {});
    }
    into.push(b'}');
    // Documents keep their text, and with it line breaks between values, which would end the line.
    into.iter_mut().skip(begun).filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

/// Appends a number, or null.
pub(super) fn write_optional(number: Option<u64>, into: &mut Vec<u8>) {
    match number {
        Some(number) => write_number(number, into),
        None => into.extend_from_slice(b"null"),
    }
}

fn write_shaped(shaped: &Shaped, into: &mut Vec<u8>, more: impl FnOnce(&mut Vec<u8>)) {
    let Shaped { document, projection } = shaped;
    match projection {
        None => document.write_json_as(&document.body, into, more),
        Some(projection) => document.write_json_as(projection, into, |into| {
            into.extend_from_slice(b",\"@projection\":true");
            more(into);
        }),
    }
}

fn write_deleted(delivery: &Delivery, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"@metadata\":{");
    if delivery.collection != EMPTY {
        into.extend_from_slice(b"\"@collection\":");
        write_string(&delivery.collection, into);
        into.push(b',');
    }
    into.extend_from_slice(b"\"@id\":");
    write_string(&delivery.id, into);
    into.extend_from_slice(b",\"@change-vector\":");
    write_string(&delivery.change_vector, into);
    into.extend_from_slice(b",\"@deleted\":true");
    write_more(delivery, into);
    into.extend_from_slice(b"}}");
}

fn write_more(delivery: &Delivery, into: &mut Vec<u8>) {
    if let Some(run) = delivery.run {
        into.extend_from_slice(b",\"@run\":");
        write_number(run.number, into);
        if let Some(through) = run.complete_through {
            into.extend_from_slice(b",\"@complete-through\":");
            write_number(through, into);
        }
    }
    if let Some(previous) = &delivery.previous {
        into.extend_from_slice(b",\"@previous\":");
        write_shaped(previous, into, |_| {});
    }
}
