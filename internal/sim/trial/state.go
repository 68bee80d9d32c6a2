// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/show/difference"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// UserActor is the actor of the change that a plan is made for, and ServerActor that of the API
// server's own controllers.
const (
	UserActor   = "user"
	ServerActor = "server"
)

// IsOperator reports whether a change is one of the operator: whatever came from outside this
// process.
func IsOperator(actor string) bool {
	return actor != UserActor && actor != ServerActor && !strings.HasSuffix(actor, "-player")
}

// States are the states that the objects of a cluster were in. Its zero value is ready to use.
type States struct {
	seen map[thing]map[[sha256.Size]byte]bool
}

type thing struct {
	resource        schema.GroupResource
	namespace, name string
}

// Enter notes a change. It reports whether the state of the object is another one, but for times and
// what grows with each change, and whether the object was never in that state: an operator that only
// goes round does nothing new.
func (s *States) Enter(c apiserver.Change) (changed, isNew bool) {
	what := thing{c.Resource.GroupResource(), c.Namespace, c.Name}
	before, after := hash(c.Old), hash(c.New)
	if s.seen == nil {
		s.seen = map[thing]map[[sha256.Size]byte]bool{}
	}
	if s.seen[what] == nil {
		s.seen[what] = map[[sha256.Size]byte]bool{before: true}
	}
	isNew = !s.seen[what][after]
	s.seen[what][after] = true
	return before != after, isNew
}

func hash(content map[string]any) [sha256.Size]byte {
	data, err := json.Marshal(Timeless(content))
	if err != nil {
		panic(err) // it came from JSON
	}
	return sha256.Sum256(data)
}

// Timeless returns what is [Essential] of an object without what grows with each change, and without
// the times in it.
func Timeless(content map[string]any) map[string]any {
	timeless, _ := difference.Timeless(Essential(content)).(map[string]any)
	return timeless
}

// Essential returns an object without what the API server keeps itself, and what kubectl,
// apply.Children and players keep of it.
func Essential(content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	out := map[string]any{}
	for name, value := range content {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			if m, ok := value.(map[string]any); ok {
				out[name] = essentialMetadata(m)
			}
		default:
			out[name] = value
		}
	}
	return out
}

func essentialMetadata(metadata map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range metadata {
		switch name {
		case "managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink":
		case "annotations":
			kept := map[string]any{}
			annotations, _ := value.(map[string]any)
			for a, text := range annotations {
				if a != lastApplied && a != apply.HashAnnotation && a != player.HistoryAnnotation {
					kept[a] = text
				}
			}
			if len(kept) > 0 {
				out[name] = kept
			}
		default:
			out[name] = value
		}
	}
	return out
}
