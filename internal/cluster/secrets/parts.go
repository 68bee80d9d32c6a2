// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// deepest is how many levels of values in values are looked at.
const deepest = 6

// parts returns a value and what in it is secret by itself: the user's password in a URL, the texts
// in JSON and YAML (a .dockerconfigjson, a kubeconfig), assignments, the lines of a key.
func parts(text string) []string {
	p := &splitter{seen: map[string]bool{text: true}, list: []string{text}}
	p.split(text, 0)
	return p.list
}

type splitter struct {
	seen map[string]bool
	list []string
}

// add adds a part.
func (p *splitter) add(part string, deep int) {
	part = strings.TrimSpace(part)
	if len(part) < Shortest || p.seen[part] {
		return
	}
	p.seen[part] = true
	p.list = append(p.list, part)
	p.split(part, deep+1)
}

var (
	// secretKey matches the name of what is secret, whatever it looks like.
	secretKey = regexp.MustCompile(`(?i)pass|pwd|secret|token|auth|credential|key$|private`)

	// identifier matches what may be an ordinary word, or a name: kube-system, registry.example.com.
	identifier = regexp.MustCompile(`^[A-Za-z]+([-._/][A-Za-z]+)*$`)

	// assigned matches KEY=value of files with variables.
	assigned = regexp.MustCompile(`(?m)^[ \t]*(?:export )?([A-Za-z_][A-Za-z0-9_.-]*)=(.+?)\r?$`)

	// connection matches the password in a connection string: "host=db password=x", "Pwd=x;".
	connection = regexp.MustCompile(`(?i)(password|passwd|pwd|secret|token|accountkey|sharedaccesskey)\s*=\s*('[^']*'|"[^"]*"|[^\s;,&'"]+)`)

	// authorized matches what follows the scheme in a header: "Bearer x".
	authorized = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+(\S+)`)

	// address matches a URL with a user and a password.
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:([^\s"']+)@`)

	// armored matches a key or a certificate in PEM.
	armored = regexp.MustCompile(`(?s)-----BEGIN [^-]*-----(.*?)-----END`)
)

func (p *splitter) split(text string, deep int) {
	if deep >= deepest || len(text) < Shortest {
		return
	}
	if content := (any)(nil); strings.ContainsAny(text, "{[:") && yaml.Unmarshal([]byte(text), &content) == nil {
		if _, scalar := content.(string); !scalar {
			p.leaves("", content, deep)
		}
	}
	for _, match := range address.FindAllStringSubmatch(text, -1) {
		p.password(match[1], deep)
	}
	for _, match := range authorized.FindAllStringSubmatch(text, -1) {
		p.add(match[1], deep)
	}
	for _, pattern := range []*regexp.Regexp{assigned, connection} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			p.leaf(match[1], strings.Trim(match[2], `'"`), deep)
		}
	}
	for _, match := range armored.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(match[1]) {
			p.add(line, deep)
		}
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
		p.add(string(decoded), deep)
		if _, password, ok := strings.Cut(string(decoded), ":"); ok { // the auth of a registry
			p.add(password, deep)
		}
	}
}

// password adds the password of a URL, as it is written and as it is meant.
func (p *splitter) password(written string, deep int) {
	p.add(written, deep)
	if plain, err := url.PathUnescape(written); err == nil {
		p.add(plain, deep)
	}
}

// leaves adds the texts and numbers in a document.
func (p *splitter) leaves(key string, content any, deep int) {
	switch c := content.(type) {
	case map[string]any:
		for name, child := range c {
			p.leaves(name, child, deep)
		}
	case []any:
		for _, child := range c {
			p.leaves(key, child, deep)
		}
	case string:
		p.leaf(key, c, deep)
	case float64:
		p.leaf(key, strconv.FormatFloat(c, 'f', -1, 64), deep)
	}
}

// leaf adds what has a name, unless it is ordinary and the name does not say that it is secret.
func (p *splitter) leaf(key, text string, deep int) {
	if secretKey.MatchString(key) || !identifier.MatchString(text) {
		p.add(text, deep)
	}
}

// IsWord reports whether a text could be the name of a field, or a word of a sentence.
func IsWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
}
