// Package console is browser live mode: an HTTP server on loopback where a
// person starts runs, watches them live, answers their requests, interrupts
// them, and looks at those that are over.
//
// The page is embedded. Everything that it does goes through the interface
// below /api/localRunner/, and a run is driven by the same package controller
// as everywhere.
//
//	GET  /api/localRunner/runs               what can be started, and the runs
//	POST /api/localRunner/runs               start one: {"kind":"script","name":"happy-path"}
//	GET  /api/localRunner/runs/ID            one run
//	GET  /api/localRunner/runs/ID/events     its stream as NDJSON; ?from=INDEX goes on
//	GET  /api/localRunner/runs/ID/trace      its final trace, once it is over
//	POST /api/localRunner/runs/ID/resolve    {"requestId":"...","response":...}
//	POST /api/localRunner/runs/ID/interrupt  also stop, close, cancel: {"reason":"..."}
//
// A refusal is {"error":{"code":"...","message":"..."}}. The code is stable.
//
// # The stream
//
// One JSON object a line; a blank line is a sign of life. First comes
// {"run":{...}}, then for each line of the runner {"index":N,"line":{...}} with
// the line as it was written, at last {"index":N,"end":true}. Indexes are
// contiguous from 0. What is not kept any more is told as
// {"index":N,"next":M,"gap":{...}}, with the text of merged deltas. A line of a
// recorded run that cannot be read is {"index":N,"problem":{...}}.
//
// # Who may come in
//
// Every request is checked before its route is looked up, whatever its method
// and path: both ends of the socket and the Host are loopback; an Origin is
// exactly the request's own; Fetch Metadata name no other site; the cookie is
// there that the printed address gives, and in the header Prp-Console-Key of a
// request to the interface the key that it gives as well; what has a body is
// application/json and at most 16 KiB. So it is also where the server listens on
// a broad address.
//
// Cookies know no ports: a server of somebody else on another port of the same
// loopback name receives the cookie from a browser that visits it. It does not
// receive the key, which the page keeps in the storage of its own origin.
//
// What remains: a process of the same user can read the printed address, and
// then act.
//
// # Duties of the caller
//
// [Config.Start] is trusted code: it alone decides which command line a name
// stands for; nothing from a browser becomes a part of it but the name, which
// was looked up before. The URL that [Server.Listen] returns is a secret of the
// user. [Server.Serve] ends with its context; it returns when every run that it
// started is over.
//
// # Invariants
//
// At most 4 runs are active and 16 are kept; a run has at most 8 stream clients.
// A client that does not read is cut off by a write deadline; it never delays a
// run. The history of a run is bounded in bytes ([Config.HistoryBytes]); what
// is merged or left out is told as a gap. A run that writes faster than it is
// folded is slowed down through its pipe.
package console
