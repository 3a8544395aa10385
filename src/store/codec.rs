//! The values behind the keys: the only place that knows bincode.
//!
//! Format version 1: bincode 2, `standard()`: integers of variable length, little-endian, strings with their length in
//! front, fields in the order they are declared. The golden bytes below pin every record of the store; the index room pins
//! its own. bincode is final and unmaintained (RUSTSEC-2025-0141), which a frozen format in one module can live with.
//!
//! Next on the walk: `document`.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
pub use bincode::{BorrowDecode, Decode, Encode};

/// A record is at most 1 GiB, so that damaged lengths can't ask for more.
const CONFIG: Configuration<LittleEndian, Varint, Limit<{ 1 << 30 }>> =
    bincode::config::standard().with_limit::<{ 1 << 30 }>();

/// Why a value can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(String);

/// Encodes a record.
///
/// # Cost
/// One pass and one copy.
pub fn encode<T: Encode>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(record, &mut bytes);
    bytes
}

/// Appends an encoded record.
pub fn encode_into<T: Encode>(record: &T, into: &mut Vec<u8>) {
    if let Err(error) = bincode::encode_into_writer(record, Append(into), CONFIG) {
        // Records are plain data and the writer can't fail: no input leads here.
        unreachable!("a record of plain data was not encoded: {error}");
    }
}

/// Decodes a whole record that owns its data.
///
/// # Errors
/// The bytes are cut short, too long, or not such a record.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, CodecError> {
    whole(bincode::decode_from_slice(bytes, CONFIG), bytes)
}

/// Decodes a whole record that borrows from `bytes`.
///
/// # Errors
/// The bytes are cut short, too long, or not such a record.
pub fn decode_borrowed<'a, T: BorrowDecode<'a, ()>>(bytes: &'a [u8]) -> Result<T, CodecError> {
    whole(bincode::borrow_decode_from_slice(bytes, CONFIG), bytes)
}

/// Decodes a record that another may follow; `None` where nothing does.
pub(super) fn decode_pair<'a, A, B>(bytes: &'a [u8]) -> Result<(A, Option<B>), CodecError>
where
    A: BorrowDecode<'a, ()>,
    B: BorrowDecode<'a, ()>,
{
    let (first, read) =
        bincode::borrow_decode_from_slice(bytes, CONFIG).map_err(|error| CodecError(error.to_string()))?;
    match bytes.get(read..) {
        None | Some([]) => Ok((first, None)),
        Some(rest) => decode_borrowed(rest).map(|second| (first, Some(second))),
    }
}

/// Decodes the beginning of a record: `T` is what its first fields are.
pub(super) fn decode_beginning<'a, T: BorrowDecode<'a, ()>>(bytes: &'a [u8]) -> Result<T, CodecError> {
    match bincode::borrow_decode_from_slice(bytes, CONFIG) {
        Ok((record, _)) => Ok(record),
        Err(error) => Err(CodecError(error.to_string())),
    }
}

fn whole<T>(decoded: Result<(T, usize), bincode::error::DecodeError>, bytes: &[u8]) -> Result<T, CodecError> {
    match decoded {
        Ok((record, read)) if read == bytes.len() => Ok(record),
        Ok((_, read)) => Err(CodecError(format!("{} bytes follow the record", bytes.len() - read))),
        Err(error) => Err(CodecError(error.to_string())),
    }
}

struct Append<'a>(&'a mut Vec<u8>);

impl Writer for Append<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The beginning of a document's record: what the committer and the feed need, without the body.
#[derive(Clone, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub(super) struct DocumentHeader<'a> {
    pub(super) etag: u64,
    pub(super) collection: u32,
    pub(super) modified_micros: i64,
    /// Bit 0: artificial.
    pub(super) flags: u8,
    pub(super) change_vector: &'a str,
    /// As spelled in this document.
    pub(super) collection_name: &'a str,
    /// As written.
    pub(super) id: &'a str,
}

/// `documents`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub(super) struct DocumentRecord<'a> {
    pub(super) header: DocumentHeader<'a>,
    pub(super) metadata: &'a str,
    pub(super) body: &'a str,
}

/// `collections`; the beginning of a record of `changes`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub(super) struct CollectionChangeRecord<'a> {
    pub(super) deleted: bool,
    /// As last written.
    pub(super) id: &'a str,
}

/// `changes`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub(super) struct ChangeRecord<'a> {
    pub(super) change: CollectionChangeRecord<'a>,
    pub(super) collection: u32,
}

/// Stands behind a record of `collections` or `changes` that an index wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct RunRecord {
    /// The last etag of the commit, which is the run's number.
    pub(super) number: u64,
    /// The etag of the sources through which the index had taken everything in; 0 where that is not known.
    pub(super) complete_through: u64,
}

/// `tombstones`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct TombstoneRecord {
    pub(super) etag: u64,
}

/// `meta`, one for each collection that was ever used.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct CollectionRecord {
    pub(super) number: u32,
    /// As first used.
    pub(super) name: String,
    pub(super) documents: u64,
    pub(super) tombstones: u64,
    pub(super) last_etag: u64,
}

/// `meta`: where the database stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub(super) struct TotalsRecord {
    pub(super) last_etag: u64,
    pub(super) documents: u64,
    pub(super) tombstones: u64,
}

/// `meta`, one for each claimed collection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct ClaimRecord {
    pub(super) owner: u32,
    pub(super) owner_name: String,
    pub(super) collection: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;

        bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn document() -> DocumentRecord<'static> {
        DocumentRecord {
            header: DocumentHeader {
                etag: 300,
                collection: 7,
                modified_micros: 1_000_000,
                flags: 1,
                change_vector: "A:300-x",
                collection_name: "Users",
                id: "Users/1",
            },
            metadata: "{}",
            body: r#"{"a":1}"#,
        }
    }

    #[test]
    fn a_document_is_these_bytes() {
        let golden = concat!(
            "fb2c01",
            "07",
            "fc80841e00",
            "01",
            "07413a3330302d78",
            "055573657273",
            "0755736572732f31",
            "027b7d",
            "077b2261223a317d"
        );
        assert_eq!(hex(&encode(&document())), golden);
    }

    #[test]
    fn a_header_is_read_without_the_body() {
        let bytes = encode(&document());
        assert_eq!(decode_beginning::<DocumentHeader<'_>>(&bytes), Ok(document().header));
        assert_eq!(decode_beginning::<DocumentHeader<'_>>(&bytes[..bytes.len() - 9]), Ok(document().header));
        assert_eq!(decode_borrowed::<DocumentRecord<'_>>(&bytes), Ok(document()));
    }

    #[test]
    fn changes_are_these_bytes() {
        let change = CollectionChangeRecord { deleted: true, id: "a/1" };
        assert_eq!(hex(&encode(&change)), "0103612f31");
        assert_eq!(hex(&encode(&ChangeRecord { change, collection: 251 })), "0103612f31fbfb00");
        assert_eq!(hex(&encode(&TombstoneRecord { etag: 250 })), "fa");
        assert_eq!(hex(&encode(&RunRecord { number: 7, complete_through: 300 })), "07fb2c01");
    }

    #[test]
    fn a_run_may_follow_a_change() {
        type Pair<'a> = (CollectionChangeRecord<'a>, Option<RunRecord>);

        let change = CollectionChangeRecord { deleted: false, id: "a/1" };
        let mut bytes = encode(&change);
        assert_eq!(decode_pair(&bytes), Ok::<Pair<'_>, _>((change.clone(), None)));
        let run = RunRecord { number: 9, complete_through: 0 };
        encode_into(&run, &mut bytes);
        assert_eq!(decode_pair(&bytes), Ok::<Pair<'_>, _>((change, Some(run))));
        bytes.push(0);
        assert!(decode_pair::<CollectionChangeRecord<'_>, RunRecord>(&bytes).is_err());
    }

    #[test]
    fn rows_of_meta_are_these_bytes() {
        let collection =
            CollectionRecord { number: 1, name: "Users".into(), documents: 2, tombstones: 3, last_etag: 70_000 };
        assert_eq!(hex(&encode(&collection)), "010555736572730203fc70110100");
        assert_eq!(hex(&encode(&TotalsRecord { last_etag: 1, documents: 2, tombstones: 3 })), "010203");
        let claim = ClaimRecord { owner: 1, owner_name: "ix".into(), collection: "Out".into() };
        assert_eq!(hex(&encode(&claim)), "01026978034f7574");
        assert_eq!(hex(&encode(&u64::MAX)), "fdffffffffffffffff");
    }

    #[test]
    fn damaged_bytes_are_errors() {
        let bytes = encode(&document());
        for end in 0..bytes.len() {
            assert!(decode_borrowed::<DocumentRecord<'_>>(&bytes[..end]).is_err(), "cut at {end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(
            decode_borrowed::<DocumentRecord<'_>>(&longer).unwrap_err().to_string(),
            "1 bytes follow the record"
        );
        assert!(decode::<Vec<u8>>(&[0xFD, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err(), "a length of 2^64 - 1");
        assert!(decode::<String>(&[1, 0xFF]).is_err(), "not UTF-8");
    }
}
