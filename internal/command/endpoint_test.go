// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The certificate of an operator behind a forwarded port is checked with an authority and the name
// that are given; a token is not sent where they are others.
func TestCertificateOfTheEndpoint(t *testing.T) {
	tokens := 0
	operator := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer canary" {
			tokens++
		}
	}))
	operator.Config.ErrorLog = log.New(io.Discard, "", 0)
	operator.StartTLS()
	defer operator.Close()
	authority, other := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "other.crt")
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: operator.Certificate().Raw}), 0o600))
	must(t, os.WriteFile(other, []byte("no certificate"), 0o600))
	for _, test := range []struct{ authority, name, want string }{
		{authority, "example.com", ""}, // a name in the certificate of httptest
		{authority, "", ""},            // 127.0.0.1 is one, too
		{authority, "other.test", "certificate is valid for"},
		{"", "example.com", "unknown authority"},
		{other, "", "--certificate-authority: "},
	} {
		f := &operatorFlags{endpoint: operator.URL, token: "canary", authority: test.authority, serverName: test.name}
		before := tokens
		err := f.checkEndpoint(true)
		if err == nil {
			_, err = f.get(t.Context(), nil, "/", nil, time.Minute)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got the error %v", test, err)
		}
		if sent := tokens > before; sent != (test.want == "") {
			t.Errorf("%+v: the token was sent: %t", test, sent)
		}
	}
}
