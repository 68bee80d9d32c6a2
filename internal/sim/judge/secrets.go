// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// noSecret demands that no value of a Secret of a user appears elsewhere.
type noSecret struct{}

func (noSecret) OnChange(l *ledger, c *change, v violate) {
	if cluster.IsSecret(c.Resource) || c.New == nil {
		return
	}
	status := statusOf(c.New)
	if status == nil {
		return
	}
	data, err := json.Marshal(status)
	if err == nil && l.revealsSecret(string(data)) {
		v("a value of a Secret appears in the status of " + c.canonical)
	}
}

func (noSecret) OnEvent(l *ledger, r *apiserver.Request, v violate) {
	if l.revealsSecret(string(r.Body)) {
		v("a value of a Secret appears in an Event")
	}
}

func (noSecret) AtEnd(l *ledger, e End, v violate) {
	for _, line := range e.Logs {
		if l.revealsSecret(line) {
			v("a value of a Secret appears in the log")
		}
	}
}

// publicKeys are keys of Secrets whose values are no secrets: an operator may write the name of a
// user or a host into a status.
var publicKeys = map[string]bool{
	"username": true, "user": true, "host": true, "hostname": true, "port": true, "database": true, "dbname": true, "endpoint": true,
	"namespace": true, "region": true, "bucket": true, "type": true, "provider": true, "ca.crt": true, "tls.crt": true, "ca-bundle.crt": true,
}

// addSecrets records the values of a Secret, which must not appear elsewhere. Their parts may: the
// name of a host in the Secret's document is no secret.
func (l *ledger) addSecrets(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		if value, err := base64.StdEncoding.DecodeString(text); err == nil && !publicKeys[strings.ToLower(key)] {
			l.secrets.AddWhole(key, string(value))
		}
	}
}

// noteUsersWords records the strings of an object that is no Secret: what a user has written there
// is no secret, although a Secret may have it, too.
func (l *ledger) noteUsersWords(c *change) {
	if cluster.IsSecret(c.Resource) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	eachString(c.New, func(s string) { l.secrets.Keep(s) })
}

// eachString calls a function for each string in a tree of JSON values.
func eachString(value any, do func(string)) {
	switch v := value.(type) {
	case string:
		do(v)
	case map[string]any:
		for _, child := range v {
			eachString(child, do)
		}
	case []any:
		for _, child := range v {
			eachString(child, do)
		}
	}
}

// revealsSecret reports whether a text has a value of a Secret.
func (l *ledger) revealsSecret(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.secrets.In(text)
}
