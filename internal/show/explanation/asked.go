// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Asked is the replica of an operator that has answered, where replicas share the objects: a shard
// of a ring.
type Asked struct {
	Shard string `json:"shard"`
	Ring  string `json:"ring"`

	host, namespace string // of its Pod
	assigned, drain string // the labels of an object
}

// AskedBy returns who has answered with these headers; nil if it is no shard.
func AskedBy(header http.Header) *Asked {
	a := &Asked{
		Shard: header.Get(ShardHeader), Ring: header.Get(RingHeader), host: header.Get(HostHeader), namespace: header.Get(NamespaceHeader),
		assigned: header.Get(AssignedHeader), drain: header.Get(DrainHeader),
	}
	if a.Ring == "" {
		return nil
	}
	return a
}

// lines say who was asked, and, if that is not the shard to which the object is assigned, whom to
// ask.
func (a *Asked) lines(labels map[string]string) []string {
	who := fmt.Sprintf("Asked was shard %q of ring %q", a.Shard, a.Ring)
	of, assigned := labels[a.assigned]
	_, drained := labels[a.drain]
	var lines []string
	switch {
	case a.assigned == "" || labels == nil:
		return []string{who}
	case !assigned:
		return []string{who, "The object is assigned to no shard, it has no label " + a.assigned + ": does the sharder run, and does the ring list this kind?"}
	case of == a.Shard:
		lines = []string{who}
	default:
		lines = []string{who + ", which may know only what was. The object is assigned to " + fmt.Sprintf("shard %q", of) + a.howToAsk(of)}
	}
	if drained {
		lines = append(lines, fmt.Sprintf("Shard %q has to hand it over to another one, and has not done so yet", of))
	}
	return lines
}

// howToAsk returns the command that makes another shard reachable, where shards have the names of
// their Pods.
func (a *Asked) howToAsk(shard string) string {
	if a.host != a.Shard || len(validation.IsDNS1123Label(a.namespace)) > 0 || len(validation.IsDNS1123Subdomain(shard)) > 0 { // they are part of a command
		return ""
	}
	return fmt.Sprintf(": kubectl port-forward -n %s pod/%s 8443", a.namespace, shard)
}
