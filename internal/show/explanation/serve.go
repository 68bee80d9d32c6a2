// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Serve adds a [Handler] for ring to the metrics server of mgr, with the protection of that server
// (metricsserver.Options.FilterProvider). It does nothing if the metrics server is disabled. Call
// it once, before the manager is started. Each answer says which shard the process is, if it is
// one.
func Serve(mgr manager.Manager, ring *journal.Ring, of *shard.Shard) error {
	s := served{ring: ring, elected: mgr.Elected, shard: of}
	return localhost.Serve(mgr, Path, http.HandlerFunc(s.serve))
}

// Handler returns a handler that serves what ring holds, for "ctrlkit explain":
//
//   - GET ?kind=KIND&group=GROUP&namespace=NAMESPACE&name=NAME returns a report about that object
//     in JSON, and 404 if nothing is known about it. Without group, only the kind has to match.
//   - Without name, it returns the list of the objects that something is known about, of that kind
//     and group if they are given.
//
// Without TLS, it refuses what asks this machine for the name of another one, as [Serve] does.
// The JSON of a report is for the command of the same version; it may change with each release.
func Handler(ring *journal.Ring) http.Handler {
	return localhost.Guard(http.HandlerFunc((&served{ring: ring}).serve))
}

// served is what is served. Elected, unless it is nil, returns a channel that is closed when the
// process becomes the leader, or holds the Lease of its shard.
type served struct {
	ring    *journal.Ring
	elected func() <-chan struct{}
	shard   *shard.Shard
}

func (s *served) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
		return
	}
	if s.shard != nil {
		s.sayShard(w.Header())
	}
	q := r.URL.Query()
	known := []journal.Object{} // an empty list in JSON, not null
	missing := ""               // why no object of the kind is known
	for _, o := range s.ring.Objects() {
		if o.Name == "" && (q.Get("kind") == "" || o.Kind == q.Get("kind")) {
			missing = cmp.Or(missing, kindMissing(s.ring.Entries(o)))
		}
		if o.Name == "" || !matches(o, q) {
			continue
		}
		if q.Get("name") != "" {
			answer(w, FromEntries(o, s.ring.Entries(o)))
			return
		}
		known = append(known, o)
	}
	why := ""
	if s.shard != nil {
		why = membership(s.shard)
	} else {
		why = leadership(w.Header(), s.elected)
	}
	if missing != "" {
		why = "its kind is not watched: " + missing
	}
	if q.Get("name") != "" {
		asked := journal.Object{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
		http.Error(w, fmt.Sprintf(Unknown+" of %s: %s", asked, why), http.StatusNotFound)
		return
	}
	answer(w, known)
}

// sayShard sets the headers of a shard.
func (s *served) sayShard(header http.Header) {
	setPlace(header)
	header.Set(ShardHeader, s.shard.Name())
	header.Set(RingHeader, s.shard.Ring())
	header.Set(AssignedHeader, s.shard.Label())
	header.Set(DrainHeader, s.shard.DrainLabel())
}

// membership returns why a shard may know nothing.
func membership(ours *shard.Shard) string {
	if !ours.Holds() {
		return fmt.Sprintf("this process, %s, does not hold its Lease, and reconciles nothing", ours)
	}
	return fmt.Sprintf("this process, %s, has not reconciled it lately: the label %s of the object names the shard that does", ours, ours.Label())
}

// kindMissing returns why a kind is not watched, by the entries about the kind itself, which are
// those of an object without a name. It is empty if the kind is watched.
func kindMissing(entries []journal.Entry) string {
	why := ""
	for _, e := range entries {
		switch ev := e.Event.(type) {
		case journal.Started:
			why = ""
		case journal.Gated:
			why = ev.Message
		}
	}
	return why
}

// matches reports whether a query asks for an object. Without a name it asks for all objects of the
// kind and group, in all namespaces.
func matches(o journal.Object, q url.Values) bool {
	switch {
	case q.Has("group") && o.Group != q.Get("group"), q.Get("kind") != "" && o.Kind != q.Get("kind"):
		return false
	case q.Get("name") == "":
		return true
	default:
		return o.Name == q.Get("name") && o.Namespace == q.Get("namespace")
	}
}

// setPlace sets the headers that say where the process runs, and returns its host.
func setPlace(header http.Header) (host string) {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	header.Set(HostHeader, host)
	if namespace := inNamespace(); namespace != "" {
		header.Set(NamespaceHeader, namespace)
	}
	return host
}

// leadership sets the headers, and returns why nothing may be known.
func leadership(header http.Header, elected func() <-chan struct{}) string {
	host := setPlace(header)
	const notLately = "has not reconciled it lately"
	if elected == nil {
		return "this process " + notLately + " (is it the leader, and does the object exist?)"
	}
	select {
	case <-elected():
		header.Set(LeaderHeader, "true")
		return "this process, the leader on " + host + ", " + notLately +
			" (does the object exist, and does the operator watch its namespace?)"
	default:
		header.Set(LeaderHeader, "false")
		return "this process, on " + host + ", is not the leader, and reconciles nothing"
	}
}

// inNamespace returns the namespace of the Pod that the process runs in, empty outside a cluster.
// It reads the file that client-go reads.
func inNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}
