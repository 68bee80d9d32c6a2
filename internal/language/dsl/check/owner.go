// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// checkOwner checks the selector owned=${STATE}.
func checkOwner(s *stateScope) {
	if s.owner == nil {
		return
	}
	s.out.Owner = s.owner.model
	owner, problem, hint := s.owner.model, "", ""
	switch {
	case s.kind == nil || s.owner.kind == nil:
	case !s.node.List:
		problem, hint = "what the object of a state controls is a list", "make it a list: []"+s.node.Kind.Text
	case !s.owner.kind.Namespaced:
		problem, hint = fmt.Sprintf("%s is cluster-scoped: objects are only found by owners that have a namespace", s.owner.kind.Kind.Kind), "select by labels"
	case !s.kind.Namespaced:
		problem, hint = fmt.Sprintf("%s is cluster-scoped and cannot be owned by the namespaced %s", s.kind.Kind.Kind, s.owner.kind.Kind.Kind), "select by labels"
	case place(owner.Namespace) != place(s.out.Namespace):
		problem, hint = fmt.Sprintf("an owner reference does not cross namespaces: what %s owns is in its namespace", owner.Name), "give both states the same namespace="
	}
	if problem != "" {
		s.d.report(diag.BadOwner, s.seen["owned"], problem, hint, s.d.related(s.owner.name, "the owner is declared here"))
	}
}

// place is a text for a namespace, as the document has it.
func place(namespace model.Namespace) string {
	var text strings.Builder
	fmt.Fprint(&text, namespace.Mode)
	if namespace.Value != nil {
		for _, part := range namespace.Value.Parts {
			text.WriteString(part.Literal)
			if part.Ref != nil {
				text.WriteString("${" + part.Ref.Source + "}")
			}
		}
	}
	return text.String()
}
