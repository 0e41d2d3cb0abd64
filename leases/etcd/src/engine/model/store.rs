//! etcd in memory, and the way to it.

use crate::grpc::{Code, Failed, Status};
use crate::link::Calls;
use crate::wire::{
    Call, Compare, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest,
    LeaseKeepAliveResponse, LeaseRevokeRequest, LeaseRevokeResponse, Operation, RangeRequest,
    RangeResponse, ResponseHeader, ResponseOp, Revision, TxnRequest, TxnResponse,
};
use prost::Message;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout_at};

/// What is kept.
#[derive(Clone)]
pub(super) struct Store {
    pub(super) cluster: u64,
    revision: i64,
    keys: BTreeMap<Vec<u8>, KeyValue>,
    leases: BTreeMap<i64, Lease>,
    /// What should not be.
    pub(super) wrong: Option<String>,
}

#[derive(Clone)]
struct Lease {
    ttl: i64,
    ends: Instant,
}

impl Lease {
    fn new(ttl: i64) -> Self {
        let ends = Instant::now() + Duration::from_secs(ttl.unsigned_abs());
        Self { ttl, ends }
    }
}

type Refused = (Code, &'static str);

const NO_LEASE: Refused = (Code::NotFound, "etcdserver: requested lease not found");

impl Store {
    pub(super) fn new() -> Self {
        let (keys, leases, wrong) = Default::default();
        Self {
            cluster: 1,
            revision: 1,
            keys,
            leases,
            wrong,
        }
    }

    /// Ends the leases that have run out.
    pub(super) fn expire(&mut self) {
        let now = Instant::now();
        let has_ended = |(_, lease): &(&i64, &Lease)| lease.ends <= now;
        let ended: Vec<i64> = self
            .leases
            .iter()
            .filter(has_ended)
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.end(id).expect("it is there");
        }
    }

    /// Ends a lease, and all that is attached to it.
    fn end(&mut self, id: i64) -> Result<LeaseRevokeResponse, Refused> {
        let before = self.keys.len();
        self.keys.retain(|_, kv| kv.lease != id);
        self.revision += i64::from(self.keys.len() < before);
        self.leases
            .remove(&id)
            .map(|_| LeaseRevokeResponse {})
            .ok_or(NO_LEASE)
    }

    /// What it was when it was saved, as another cluster. Leases have their ttl from now on.
    pub(super) fn restore(&mut self, saved: Self) {
        let cluster = self.cluster + 1;
        *self = Self { cluster, ..saved };
        for lease in self.leases.values_mut() {
            *lease = Lease::new(lease.ttl);
        }
    }

    /// # Panics
    /// When something is held or wished for.
    pub(super) fn is_empty(&self) {
        let keys = self.keys.keys().map(|key| String::from_utf8_lossy(key));
        let left: Vec<_> = keys.filter(|key| !key.ends_with("/version")).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader {
            cluster_id: self.cluster,
            revision: self.revision,
        })
    }

    /// Does a call.
    fn answer(&mut self, path: &str, asked: &[u8]) -> Result<Vec<u8>, Refused> {
        /// The call that has this path, and no other.
        fn call<C: Call + Default>(path: &str, asked: &[u8]) -> Option<C> {
            (path == C::PATH).then(|| C::decode(asked).expect("it was encoded so"))
        }
        fn encoded<A: Message>(answer: Result<A, Refused>) -> Result<Vec<u8>, Refused> {
            answer.map(|answer| answer.encode_to_vec())
        }
        if let Some(asked) = call::<RangeRequest>(path, asked) {
            return encoded(Ok(self.range(&asked)));
        }
        if let Some(asked) = call::<TxnRequest>(path, asked) {
            return encoded(self.transaction(asked));
        }
        if let Some(asked) = call::<LeaseGrantRequest>(path, asked) {
            return encoded(self.grant(asked));
        }
        if let Some(LeaseKeepAliveRequest { id }) = call(path, asked) {
            return encoded(Ok(self.keep(id)));
        }
        if let Some(LeaseRevokeRequest { id }) = call(path, asked) {
            return encoded(self.end(id));
        }
        panic!("the protocol does not call {path}")
    }

    fn grant(
        &mut self,
        LeaseGrantRequest { ttl, id }: LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, Refused> {
        let id = if id == 0 { fastrand::i64(1..) } else { id };
        if self.leases.contains_key(&id) {
            return Err((Code::FailedPrecondition, "etcdserver: lease already exists"));
        }
        self.leases.insert(id, Lease::new(ttl));
        Ok(LeaseGrantResponse { id, ttl })
    }

    fn keep(&mut self, id: i64) -> LeaseKeepAliveResponse {
        let now = Instant::now();
        let lease = self.leases.get_mut(&id).filter(|lease| lease.ends > now);
        let ttl = lease.map_or(0, |lease| {
            *lease = Lease::new(lease.ttl);
            lease.ttl
        });
        LeaseKeepAliveResponse { ttl }
    }

    fn range(&self, asked: &RangeRequest) -> RangeResponse {
        let RangeRequest { key, range_end } = asked;
        let kvs = match range_end.is_empty() {
            true => self.keys.get(key).cloned().into_iter().collect(),
            false => self
                .keys
                .range(key.clone()..range_end.clone())
                .map(|(_, kv)| kv.clone())
                .collect(),
        };
        RangeResponse {
            header: self.header(),
            kvs,
        }
    }

    fn holds(&self, compare: &Compare) -> bool {
        let kv = self.keys.get(&compare.key).cloned().unwrap_or_default();
        match compare.revision.expect("it is set") {
            Revision::Create(revision) => kv.create_revision == revision,
            Revision::Mod(revision) => kv.mod_revision == revision,
        }
    }

    fn transaction(&mut self, asked: TxnRequest) -> Result<TxnResponse, Refused> {
        let succeeded = asked.compare.iter().all(|compare| self.holds(compare));
        let operations = if succeeded {
            asked.success
        } else {
            asked.failure
        };
        let operations = operations
            .into_iter()
            .map(|operation| operation.request.expect("it is set"));
        let operations: Vec<_> = operations.collect();
        let lacks_lease = |operation: &Operation| match operation {
            Operation::Put(put) => put.lease != 0 && !self.leases.contains_key(&put.lease),
            Operation::Range(_) | Operation::Delete(_) => false,
        };
        if operations.iter().any(lacks_lease) {
            return Err(NO_LEASE);
        }
        let writes = operations
            .iter()
            .any(|operation| !matches!(operation, Operation::Range(_)));
        self.revision += i64::from(writes);
        let responses = operations
            .into_iter()
            .map(|operation| self.apply(operation))
            .collect();
        self.check();
        Ok(TxnResponse {
            header: self.header(),
            succeeded,
            responses,
        })
    }

    fn apply(&mut self, operation: Operation) -> ResponseOp {
        let mut range = None;
        match operation {
            Operation::Range(asked) => range = Some(self.range(&asked)),
            Operation::Delete(asked) => drop(self.keys.remove(&asked.key)),
            Operation::Put(put) => {
                let mod_revision = self.revision;
                let before = self.keys.get(&put.key).map(|kv| kv.create_revision);
                let create_revision = before.unwrap_or(mod_revision);
                let (key, value, lease) = (put.key.clone(), put.value, put.lease);
                self.keys.insert(
                    put.key,
                    KeyValue {
                        key,
                        create_revision,
                        mod_revision,
                        value,
                        lease,
                    },
                );
            }
        }
        ResponseOp { range }
    }

    /// No request holds and waits.
    fn check(&mut self) {
        for key in self.keys.keys() {
            let key = String::from_utf8_lossy(key);
            let wish = key.replace("/held/", "/wish/");
            if wish != key && self.keys.contains_key(wish.as_bytes()) {
                self.wrong = Some(format!("a holder waits: {key}"));
            }
        }
    }
}

/// The way to the store, which may fail.
#[derive(Clone)]
pub(super) struct Network {
    store: Rc<RefCell<Store>>,
    /// How many calls of a hundred do.
    pub(super) fails: Rc<Cell<u32>>,
}

impl Network {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store: Rc::new(RefCell::new(store)),
            fails: Rc::default(),
        }
    }

    /// Another way to the same store.
    pub(super) fn apart(&self) -> Self {
        Self {
            store: Rc::clone(&self.store),
            fails: Rc::default(),
        }
    }

    pub(super) fn store(&self) -> RefMut<'_, Store> {
        self.store.borrow_mut()
    }
}

/// A call arrives also when nobody waits for it any more.
impl Calls for Network {
    async fn call<C: Call>(&self, by: Instant, asked: &C) -> Result<C::Answer, Failed> {
        let (store, asked) = (Rc::clone(&self.store), asked.encode_to_vec());
        let (answers, answered) = oneshot::channel();
        let usual = || Duration::from_micros(fastrand::u64(100..3000));
        let fails = |percent: u32| fastrand::u32(..100) < percent;
        let (is_lost, is_late) = (fails(self.fails.get()), fails(2 * self.fails.get()));
        let (answer_is_lost, mut before, after) = (fails(self.fails.get()), usual(), usual());
        if is_late {
            before *= fastrand::u32(1..1000);
        }
        spawn_local(async move {
            sleep(before).await;
            if is_lost {
                return;
            }
            let answer = store.borrow_mut().answer(C::PATH, &asked);
            sleep(after).await;
            if !answer_is_lost {
                // Nobody may wait for it.
                let _ = answers.send(answer);
            }
        });
        let lost = || Failed::Broken("the call is lost".into());
        let answer = timeout_at(by, answered).await.map_err(|_late| lost())?;
        match answer.map_err(|_dropped| lost())? {
            Ok(answer) => Ok(C::Answer::decode(answer.as_slice())?),
            Err((code, message)) => Err(Failed::Status(Status {
                code,
                message: message.to_owned(),
            })),
        }
    }
}
