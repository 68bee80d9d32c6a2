// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"
)

// mostNames is how many names of one sort, of one controller, are told apart. Who makes names from what is in the cluster has more of them
// than a Prometheus can bear.
const mostNames = 200

// other stands for all names after the first mostNames.
const other = "other"

// names bound the labels whose values the operator chooses.
type names struct {
	mu    sync.RWMutex // for known
	known map[scope]map[name]struct{}
}

// A scope is what names are counted in: those of one label of one controller.
type scope struct{ controller, label string }

// A name is one that has been seen. The step is that of an action and empty for all else: equal actions of two steps are two.
type name struct{ step, name string }

func newNames() *names { return &names{known: make(map[scope]map[name]struct{})} }

func (n *names) step(controller, step string) string {
	return n.bound(scope{controller, "step"}, name{"", step})
}

func (n *names) kind(controller, kind string) string {
	return n.bound(scope{controller, "kind"}, name{"", kind})
}

func (n *names) class(controller, class string) string {
	return n.bound(scope{controller, "class"}, name{"", class})
}

// action returns the labels for a step and its action. Those of a step that is counted as other are other, too.
func (n *names) action(controller, step, action string) (string, string) {
	label := n.step(controller, step)
	if label == other && step != other {
		return other, other
	}
	return label, n.bound(scope{controller, "action"}, name{step, action})
}

// bound returns the name, or other if it is one too many. Bytes that are no text, which Prometheus refuses, are replaced.
func (n *names) bound(s scope, wanted name) string {
	wanted.name = strings.ToValidUTF8(wanted.name, "\uFFFD")
	n.mu.RLock()
	_, known := n.known[s][wanted]
	full := len(n.known[s]) >= mostNames
	n.mu.RUnlock()
	if known || !full && n.learn(s, wanted) {
		return wanted.name
	}
	return other
}

// learn adds a name if there is room for it, and says whether it is known now.
func (n *names) learn(s scope, wanted name) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.known[s]
	if of == nil {
		of = make(map[name]struct{})
		n.known[s] = of
	}
	if len(of) < mostNames {
		of[wanted] = struct{}{}
	}
	_, known := of[wanted]
	return known
}
