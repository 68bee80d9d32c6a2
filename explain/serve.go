package explain

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Path is where an operator serves what it knows, below the address of its metrics.
const Path = "/debug/ctrlkit/explain"

// Unknown is what the answer of a [Handler] begins with when it knows nothing of an object, by which it differs from that of a server that has no such path.
const Unknown = "nothing is known"

// Serve has mgr serve what ring keeps beside its metrics, guarded as they are (metricsserver.Options.FilterProvider). It does nothing when
// metrics are off. It is called once, before the manager is started.
func Serve(mgr manager.Manager, ring *journal.Ring) error {
	return mgr.AddMetricsServerExtraHandler(Path, Handler(ring))
}

// Handler answers GET ?kind=KIND&group=GROUP&namespace=NAMESPACE&name=NAME with the [Report] of an object in JSON, 404 if nothing is known of it, and
// without a name with the list of objects that something is known of. Without group the kind alone has to match.
func Handler(ring *journal.Ring) http.Handler {
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
		if q.Get("name") != "" {
			http.Error(w, fmt.Sprintf(Unknown+" of %s %s: this process has not reconciled it lately (is it the leader, and does the object exist?)",
				q.Get("kind"), slash(q.Get("namespace"), q.Get("name"))), http.StatusNotFound)
			return
		}
		answer(w, known)
	})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked is gone: nobody is left to be told
}
