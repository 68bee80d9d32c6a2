// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// issuer is the issuer and the default audience of tokens.
const issuer = "https://kubernetes.default.svc.cluster.local"

// errInvalidToken is the error of a TokenReview of a token that the server has not issued.
var errInvalidToken = errors.New("invalid bearer token")

// claims are the content of a token, with the names of the real server.
type claims struct {
	Audiences []string      `json:"aud"`
	Expires   int64         `json:"exp"`
	IssuedAt  int64         `json:"iat"`
	Issuer    string        `json:"iss"`
	ID        string        `json:"jti"`
	Private   privateClaims `json:"kubernetes.io"`
	NotBefore int64         `json:"nbf"`
	Subject   string        `json:"sub"`
}

// privateClaims name the account of a token, and the objects that it is bound to.
type privateClaims struct {
	Namespace string     `json:"namespace"`
	Node      *reference `json:"node,omitempty"`
	Pod       *reference `json:"pod,omitempty"`
	Secret    *reference `json:"secret,omitempty"`
	Account   *reference `json:"serviceaccount"`
}

func accountName(p privateClaims) string {
	return serviceaccount.MakeUsername(p.Namespace, p.Account.Name)
}

// user returns the user as which a client with the token makes requests.
func (c claims) user() *authenticationv1.UserInfo {
	p := c.Private
	extra := map[string]authenticationv1.ExtraValue{user.CredentialIDKey: {"JTI=" + c.ID}}
	if p.Pod != nil {
		extra[serviceaccount.PodNameKey], extra[serviceaccount.PodUIDKey] = authenticationv1.ExtraValue{p.Pod.Name}, authenticationv1.ExtraValue{string(p.Pod.UID)}
	}
	if p.Node != nil {
		extra[serviceaccount.NodeNameKey] = authenticationv1.ExtraValue{p.Node.Name}
		if p.Node.UID != "" {
			extra[serviceaccount.NodeUIDKey] = authenticationv1.ExtraValue{string(p.Node.UID)}
		}
	}
	return &authenticationv1.UserInfo{
		Username: accountName(p), UID: string(p.Account.UID), Groups: append(serviceaccount.MakeGroupNames(p.Namespace), user.AllAuthenticated), Extra: extra,
	}
}

// jwtHeader is the first part of all tokens. Unlike those of the real server, they are signed with a
// secret of the server, which depends only on the seed: clients can read them, and only the server
// can check them.
var jwtHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// sign returns the token with these claims.
func (m *minter) sign(c claims) string {
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err) // plain fields
	}
	text := jwtHeader + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + m.signature(text)
}

func (m *minter) signature(text string) string {
	h := hmac.New(sha256.New, fmt.Appendf(nil, "tokens of %d", m.seed))
	_, _ = h.Write([]byte(text)) //nolint:errcheck // writing to a hash never fails
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// verify returns the claims of a token, as far as it can be read, and reports whether the server has
// signed it.
func (m *minter) verify(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil || c.Private.Account == nil {
		return claims{}, false
	}
	return c, hmac.Equal([]byte(parts[2]), []byte(m.signature(parts[0]+"."+parts[1])))
}
