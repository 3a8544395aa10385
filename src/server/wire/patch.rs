//! The JSON of JSON Patch (RFC 6902): `{"Operations":[{"op":"add","path":"/a","value":1},…]}`, or the array alone.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::database::{JsonPatch, PatchStep};

#[derive(Deserialize)]
struct Enveloped<'a> {
    #[serde(borrow, rename = "Operations")]
    operations: Operations<'a>,
}

/// The operations, read so that an error names its position and there are not too many.
struct Operations<'a>(Vec<Operation<'a>>);

#[derive(Deserialize)]
struct Operation<'a> {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    /// JSON null is a value too.
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

/// Reads the operations of a patch.
///
/// # Errors
/// What is wrong, with the position of the operation.
pub(crate) fn read_patch(json: &[u8]) -> Result<Vec<PatchStep>, String> {
    let is_bare = json.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let read = if is_bare {
        serde_json::from_slice::<Operations<'_>>(json)
    } else {
        serde_json::from_slice::<Enveloped<'_>>(json).map(|patch| patch.operations)
    };
    let Operations(operations) = read.map_err(|error| format!("it is not {{\"Operations\":[…]}}: {error}"))?;
    let steps = operations.into_iter().enumerate().map(|(position, operation)| {
        step(operation).map_err(|reason| format!("operation {position} of the patch, counted from 0: {reason}"))
    });
    steps.collect()
}

fn step(operation: Operation<'_>) -> Result<PatchStep, String> {
    let Operation { op, path, from, value } = operation;
    let op = op.ok_or("it has no 'op'")?;
    let path = path.ok_or_else(|| format!("'{op}' needs a 'path'"))?;
    let from = from.ok_or_else(|| format!("'{op}' needs a 'from'"));
    let value = value.map(|value| value.get().to_owned()).ok_or_else(|| format!("'{op}' needs a 'value'"));
    Ok(match op.as_str() {
        "add" => PatchStep::Add { path, value: value? },
        "remove" => PatchStep::Remove { path },
        "replace" => PatchStep::Replace { path, value: value? },
        "move" => PatchStep::Move { from: from?, path },
        "copy" => PatchStep::Copy { from: from?, path },
        "test" => PatchStep::Test { path, value: value? },
        other => {
            let other: String = other.chars().take(80).collect();
            return Err(format!("'{other}' is no operation; use add, remove, replace, move, copy or test"));
        }
    })
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'de: 'a, 'a> Deserialize<'de> for Operations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Operations<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of operations")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut operations = Vec::new();
                while let Some(operation) = seq.next_element()? {
                    operations.push(operation);
                    if operations.len() > JsonPatch::OPERATIONS_MAX {
                        let max = JsonPatch::OPERATIONS_MAX;
                        return Err(A::Error::custom(format!("a patch has at most {max} operations; send several")));
                    }
                }
                Ok(Operations(operations))
            }
        }

        deserializer.deserialize_seq(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_stand_in_an_envelope_or_alone() {
        let operations = r#"[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b","from":null},{"op":"move","from":"/c","path":"/d"}]"#;
        let steps = vec![
            PatchStep::Add { path: "/a".into(), value: "null".into() },
            PatchStep::Remove { path: "/b".into() },
            PatchStep::Move { from: "/c".into(), path: "/d".into() },
        ];
        assert_eq!(read_patch(operations.as_bytes()), Ok(steps.clone()));
        assert_eq!(read_patch(format!("{{\"Operations\":{operations}}}").as_bytes()), Ok(steps));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (patch, words) in [
            (r#"[{"path":"/a"}]"#, "operation 0 of the patch, counted from 0: it has no 'op'"),
            (
                r#"[{"op":"remove","path":"/a"},{"op":"add","path":"/a"}]"#,
                "operation 1 of the patch, counted from 0: 'add' needs a 'value'",
            ),
            (r#"[{"op":"copy","path":"/a"}]"#, "needs a 'from'"),
            (r#"[{"op":"test","value":1}]"#, "needs a 'path'"),
            (r#"[{"op":"ADD","path":"/a","value":1}]"#, "'ADD' is no operation"),
            (r#"{"Patch":{"Script":"this.a = 1"}}"#, "Operations"),
            ("7", "Operations"),
            ("", "Operations"),
        ] {
            let error = read_patch(patch.as_bytes()).unwrap_err();
            assert!(error.contains(words), "{patch}: {error}");
        }
        let many = format!("[{}]", vec![r#"{"op":"remove","path":"/a"}"#; 10_001].join(","));
        assert!(read_patch(many.as_bytes()).unwrap_err().contains("at most 10000"));
    }
}
