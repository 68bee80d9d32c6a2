// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

// operatorFlags say how to reach a cluster, and an operator in it.
type operatorFlags struct {
	kubeconfig                 run.Kubeconfig
	endpoint, token, tokenFile string
	insecure                   bool

	authority, serverName string         // of the certificate of the endpoint
	roots                 *x509.CertPool // of authority, set by checkEndpoint
}

// defaultEndpoint is where an operator on this machine serves its metrics, by the convention of
// kubebuilder.
const defaultEndpoint = "http://localhost:8080"

// clusterFlags adds the flags that name a cluster.
func clusterFlags(set *pflag.FlagSet, into *run.Kubeconfig) {
	set.StringVar(&into.File, "kubeconfig", "", "the kubeconfig `FILE` (default as kubectl: $KUBECONFIG, ~/.kube/config)")
	set.StringVar(&into.Context, "context", "", "the `CONTEXT` of the kubeconfig (default the current one)")
}

// register adds the flags to those of a command.
func (f *operatorFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	clusterFlags(set, &f.kubeconfig)
	set.StringVar(&f.endpoint, "endpoint", os.Getenv("CTRLKIT_ENDPOINT"), "`URL` of the operator's metrics server; \"none\" asks no operator")
	set.Lookup("endpoint").DefValue = ""
	set.StringVar(&f.token, "token", "", "`TOKEN` for the endpoint, which other users of the machine can read (default $CTRLKIT_TOKEN, or that of the kubeconfig)")
	set.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token for the endpoint")
	set.StringVar(&f.authority, "certificate-authority", "", "`FILE` with the authorities that may have signed the certificate of the endpoint (default those of the system)")
	set.StringVar(&f.serverName, "tls-server-name", "", "the `NAME` in that certificate (default that of the endpoint), for a forwarded port")
	set.BoolVar(&f.insecure, "insecure", false, "do not check the certificate of the endpoint")
}

// noEndpoint is the value of --endpoint that asks no operator.
const noEndpoint = "none"

// checkEndpoint sets the endpoint if none was given, and reads who may have signed its certificate.
// It returns an error if the endpoint is not a URL.
func (f *operatorFlags) checkEndpoint(byFlag bool) error {
	from := "--endpoint"
	if !byFlag {
		from = "$CTRLKIT_ENDPOINT"
	}
	f.endpoint = cmp.Or(f.endpoint, f.kubeconfig.Endpoint(), defaultEndpoint)
	base, _, err := f.address()
	if f.endpoint != noEndpoint && err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if _, err := os.Stat(f.kubeconfig.File); f.kubeconfig.File != "" && err != nil {
		return fmt.Errorf("--kubeconfig: %w", err) // also if the operator alone is asked
	}
	if f.token != "" && f.tokenFile != "" {
		return errors.New("--token and --token-file exclude each other")
	}
	if f.endpoint != noEndpoint && base.Scheme != "https" && (f.token != "" || f.tokenFile != "") {
		return fmt.Errorf("a token is sent over TLS only, and %s has none: leave out the token, or set --endpoint to an address that begins with https", f.at())
	}
	if f.authority != "" {
		certificates, err := certutil.CertsFromFile(f.authority)
		if err != nil {
			return fmt.Errorf("--certificate-authority: %w", err)
		}
		f.roots = x509.NewCertPool()
		for _, c := range certificates {
			f.roots.AddCert(c)
		}
	}
	return nil
}

// address returns the URL of the endpoint, and the Unix socket by which it is reached, if it is one.
// An error does not have the text, which may have a password.
func (f *operatorFlags) address() (base *url.URL, socket string, err error) {
	base, err = url.Parse(f.endpoint)
	switch {
	case err == nil && base.Scheme == "unix" && base.Path != "":
		return &url.URL{Scheme: "http", Host: "localhost"}, base.Path, nil
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, "", errors.New("not a URL such as https://localhost:8443")
	}
	return base, "", nil
}

// at returns the endpoint for people, without a password.
func (f *operatorFlags) at() string {
	if base, err := url.Parse(f.endpoint); err == nil {
		return base.Redacted()
	}
	return "--endpoint"
}

// cluster returns how to reach the cluster, and the namespace, or that of the context.
func (f *operatorFlags) cluster(namespace string) (*rest.Config, string, error) {
	target, err := f.kubeconfig.Load()
	if err != nil {
		return nil, "", err
	}
	target.Config.Timeout = 10 * time.Second
	target.Config.WarningHandler = rest.NoWarnings{}
	return target.Config, cmp.Or(namespace, target.Namespace), nil
}

// An answer is the response of an operator.
type answer struct {
	header http.Header
	code   int
	status string
	body   []byte
}

// get sends a question to the operator. Config may be nil.
func (f *operatorFlags) get(ctx context.Context, config *rest.Config, path string, query url.Values, atMost time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return f.read(ctx, config, path, query, nil)
}

// read does that without a limit, and has progress called with each JSON value of the answer as it
// comes, if it is not nil: the body is then the last one.
func (f *operatorFlags) read(ctx context.Context, config *rest.Config, path string, query url.Values, progress func(json.RawMessage)) (answer, error) {
	base, _, err := f.address()
	if err != nil {
		return answer{}, fmt.Errorf("--endpoint: %w", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + path
	base.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("asking the operator at %s: %w", f.at(), err)
	}
	token, err := f.bearer(config)
	if err != nil {
		return answer{}, err
	}
	if token != "" && base.Scheme == "https" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: f.transport()}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		if detailed := (*url.Error)(nil); errors.As(err, &detailed) {
			err = detailed.Err // without the address, which is in the message below
		}
		return answer{}, fmt.Errorf("the operator does not answer at %s; set --endpoint to where it serves its metrics (%w)", f.at(), err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := lastOf(response, progress)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer of the operator at %s: %w", f.at(), err)
	}
	return answer{response.Header, response.StatusCode, response.Status, body}, nil
}

// lastOf returns the body of a response, or the last of its JSON values.
func lastOf(response *http.Response, progress func(json.RawMessage)) (body []byte, err error) {
	if progress == nil || response.StatusCode != http.StatusOK {
		return io.ReadAll(io.LimitReader(response.Body, 16<<20))
	}
	for decoder := json.NewDecoder(response.Body); ; {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, err
		}
		progress(value)
		body = value
	}
}

// bearer returns the token for the endpoint, "" if there is none. Config may be nil.
func (f *operatorFlags) bearer(config *rest.Config) (string, error) {
	token := f.token
	if f.tokenFile != "" {
		content, err := os.ReadFile(f.tokenFile)
		if token = strings.TrimSpace(string(content)); err == nil && token == "" {
			err = fmt.Errorf("%s has no token", f.tokenFile)
		}
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
	}
	token = cmp.Or(token, os.Getenv("CTRLKIT_TOKEN"))
	if config != nil {
		token = cmp.Or(token, config.BearerToken)
	}
	return token, nil
}

// transport returns what reaches the operator.
func (f *operatorFlags) transport() *http.Transport {
	if _, socket, err := f.address(); err == nil && socket != "" {
		return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
	}
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: f.roots, ServerName: f.serverName, InsecureSkipVerify: f.insecure, MinVersion: tls.VersionTLS12}, //nolint:gosec // requested by --insecure
	}
}

// refusal returns the error of an answer that is not OK, nil if it is.
func (f *operatorFlags) refusal(got answer, path string) error {
	switch got.code {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the operator at %s answers %s: set CTRLKIT_TOKEN or --token-file to a token that allows to get %s", f.at(), got.status, path)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(got.body)), "\n")
	return fmt.Errorf("the operator at %s answers %s: %.200s", f.at(), got.status, text)
}

func (f *operatorFlags) decode(answered answer, into any) error {
	if err := json.Unmarshal(answered.body, into); err != nil {
		return fmt.Errorf("what answers at %s is not an operator of this version of ctrlkit: %w", f.at(), err)
	}
	return nil
}
