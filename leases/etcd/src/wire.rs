//! Messages of etcd's interface, version 3: the fields that are used, as `rpc.proto` of the server numbers them.

use prost::{Enumeration, Message, Oneof};

/// A call: its path, what is sent, and what comes back.
pub(crate) trait Call: Message + 'static {
    const PATH: &'static str;
    type Answer: Message + Default + 'static;
}

macro_rules! calls {
    ($($asked:ty => $path:literal => $answer:ty;)*) => {
        $(impl Call for $asked {
            const PATH: &'static str = $path;
            type Answer = $answer;
        })*
    };
}

calls! {
    RangeRequest => "/etcdserverpb.KV/Range" => RangeResponse;
    TxnRequest => "/etcdserverpb.KV/Txn" => TxnResponse;
    LeaseGrantRequest => "/etcdserverpb.Lease/LeaseGrant" => LeaseGrantResponse;
    LeaseRevokeRequest => "/etcdserverpb.Lease/LeaseRevoke" => LeaseRevokeResponse;
    LeaseKeepAliveRequest => "/etcdserverpb.Lease/LeaseKeepAlive" => LeaseKeepAliveResponse;
    LeaseTimeToLiveRequest => "/etcdserverpb.Lease/LeaseTimeToLive" => LeaseTimeToLiveResponse;
    WatchRequest => "/etcdserverpb.Watch/Watch" => WatchResponse;
    AuthenticateRequest => "/etcdserverpb.Auth/Authenticate" => AuthenticateResponse;
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub(crate) cluster_id: u64,
    /// Of the whole store. Each transaction that writes has a larger one.
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

/// Keys from `key` to before `range_end`, or the one key. Without `serializable` the answer is linearizable.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub(crate) request: Option<Operation>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

impl From<Operation> for RequestOp {
    fn from(operation: Operation) -> Self {
        Self {
            request: Some(operation),
        }
    }
}

/// Only ranges are looked at.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeResponse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum Target {
    Create = 1,
    Mod = 2,
}

/// That a revision of a key is this one, or 0 if there is no such key.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Compare {
    #[prost(enumeration = "Target", tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "Revision", tags = "5, 6")]
    pub(crate) revision: Option<Revision>,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(crate) enum Revision {
    #[prost(int64, tag = "5")]
    Create(i64),
    #[prost(int64, tag = "6")]
    Mod(i64),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseGrantRequest {
    /// In seconds. The server may grant more.
    #[prost(int64, tag = "1")]
    pub(crate) ttl: i64,
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseRevokeRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseRevokeResponse {}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseKeepAliveRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseKeepAliveResponse {
    /// What it was granted for, which it has again. 0 if there is no such lease.
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseTimeToLiveRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseTimeToLiveResponse {
    /// What is left. -1 if there is no such lease.
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    /// Whether events have what was there before.
    #[prost(bool, tag = "6")]
    pub(crate) prev_kv: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchResponse {
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(string, tag = "6")]
    pub(crate) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum EventType {
    Put = 0,
    Delete = 1,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Event {
    #[prost(enumeration = "EventType", tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(crate) prev_kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}
