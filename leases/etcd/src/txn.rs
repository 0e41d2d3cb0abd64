//! Parts of calls.

use crate::edge::intact;
use crate::engine::refused;
use crate::grpc::{Code, Failed, Status};
use crate::wire::{
    Compare, Operation, PutRequest, RangeRequest, RangeResponse, ResponseHeader, Revision, Target,
    TxnRequest, TxnResponse,
};
use spanlock_lease::Trouble;
use std::time::Duration;

/// Ttls of etcd are whole seconds. The server may grant more.
pub(crate) fn seconds(ttl: Duration) -> i64 {
    let more = u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(ttl.as_secs() + more)
        .unwrap_or(i64::MAX)
        .max(1)
}

pub(crate) fn put(key: Vec<u8>, value: impl ToString, lease: i64) -> Operation {
    let value = value.to_string().into_bytes();
    Operation::Put(PutRequest { key, value, lease })
}

/// That a key was last written by this transaction, or is not there.
pub(crate) fn was_written(key: Vec<u8>, revision: i64) -> Compare {
    Compare {
        target: Target::Mod as i32,
        key,
        revision: Some(Revision::Mod(revision)),
    }
}

/// That there is no such key.
pub(crate) fn is_absent(key: Vec<u8>) -> Compare {
    Compare {
        target: Target::Create as i32,
        key,
        revision: Some(Revision::Create(0)),
    }
}

/// What an edge compares.
pub(crate) fn needed(edge: &str, compare: Compare) -> Vec<Compare> {
    match intact(edge) {
        true => vec![compare],
        false => Vec::new(),
    }
}

pub(crate) fn one(key: Vec<u8>) -> RangeRequest {
    RangeRequest {
        key,
        range_end: Vec::new(),
    }
}

pub(crate) fn is_status(failed: &Failed, expected: Code) -> bool {
    matches!(failed, Failed::Status(Status { code, .. }) if *code == expected)
}

pub(crate) fn transaction(
    compare: Vec<Compare>,
    success: Vec<Operation>,
    failure: Vec<Operation>,
) -> TxnRequest {
    let all = |operations: Vec<Operation>| operations.into_iter().map(Into::into).collect();
    TxnRequest {
        compare,
        success: all(success),
        failure: all(failure),
    }
}

/// What a transaction has read last.
pub(crate) fn last_range(answer: TxnResponse) -> Result<(ResponseHeader, RangeResponse), Trouble> {
    let range = answer
        .responses
        .into_iter()
        .next_back()
        .and_then(|response| response.range);
    let header = answer.header;
    header
        .zip(range)
        .ok_or_else(|| refused("etcd's answer lacks what was read"))
}
