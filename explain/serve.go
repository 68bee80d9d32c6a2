// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Path is where an operator serves what it knows, below the address of its metrics.
const Path = "/debug/ctrlkit/explain"

// Unknown is what the answer of a [Handler] begins with when it knows nothing of an object, by
// which it differs from that of a server that has no such path.
const Unknown = "nothing is known"

// Headers of the answer that nothing is known: whether the process that was asked is the leader,
// false or true, what its host, in a cluster its Pod, is called, and the namespace in which it
// runs, if any.
const (
	LeaderHeader    = "Ctrlkit-Leader"
	HostHeader      = "Ctrlkit-Host"
	NamespaceHeader = "Ctrlkit-Namespace"
)

// Serve has mgr serve what ring keeps beside its metrics, guarded as they are
// (metricsserver.Options.FilterProvider). It does nothing when metrics are off. It is called once,
// before the manager is started.
func Serve(mgr manager.Manager, ring *journal.Ring) error {
	return mgr.AddMetricsServerExtraHandler(Path, handler(ring, mgr.Elected))
}

// Handler answers GET ?kind=KIND&group=GROUP&namespace=NAMESPACE&name=NAME with the [Report] of an
// object in JSON, 404 if nothing is known of it, and without a name with the list of objects that
// something is known of. Without group the kind alone has to match.
func Handler(ring *journal.Ring) http.Handler { return handler(ring, nil) }

// handler is a Handler of a process that may be the leader or not: elected, if not nil, returns a
// channel that is closed when it is.
func handler(ring *journal.Ring, elected func() <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET is answered", http.StatusMethodNotAllowed)
			return
		}
		q := r.URL.Query()
		known := []Object{} // an empty list in JSON, not null
		for _, o := range ring.Objects() {
			if q.Has("group") && o.Group != q.Get("group") || q.Get("kind") != "" && o.Kind != q.Get("kind") {
				continue
			}
			if q.Get("name") == "" {
				known = append(known, Object{o.Group, o.Kind, o.Namespace, o.Name})
				continue
			}
			if o.Name == q.Get("name") && o.Namespace == q.Get("namespace") {
				answer(w, FromEntries(o, ring.Entries(o)))
				return
			}
		}
		why := leadership(w.Header(), elected)
		if q.Get("name") != "" {
			http.Error(w, fmt.Sprintf(Unknown+" of %s %s: %s", q.Get("kind"), slash(q.Get("namespace"), q.Get("name")), why), http.StatusNotFound)
			return
		}
		answer(w, known)
	})
}

// leadership sets the headers, and says why nothing may be known.
func leadership(header http.Header, elected func() <-chan struct{}) string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	header.Set(HostHeader, host)
	if namespace := inNamespace(); namespace != "" {
		header.Set(NamespaceHeader, namespace)
	}
	const notLately = "has not reconciled it lately"
	if elected == nil {
		return "this process " + notLately + " (is it the leader, and does the object exist?)"
	}
	select {
	case <-elected():
		header.Set(LeaderHeader, "true")
		return "this process, the leader on " + host + ", " + notLately + " (does the object exist, and does the operator watch its namespace?)"
	default:
		header.Set(LeaderHeader, "false")
		return "this process, on " + host + ", is not the leader, and reconciles nothing"
	}
}

// inNamespace returns the namespace of the Pod that the process runs in, empty outside a cluster:
// from where client-go takes it.
func inNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked is gone: nobody is left to be told
}
