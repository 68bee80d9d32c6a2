// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ctrlkit/ctrlkit/internal/cluster/markers"
	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

// OnlyAccount is the value of Options.AsAccount for the ServiceAccount that the bindings name.
const OnlyAccount = "-"

// ErrRefused is returned by Run if the operator, running as its ServiceAccount, made a request that
// no rule allows.
var ErrRefused = errors.New("the operator lacks a permission")

// account is the ServiceAccount as which the operator runs.
type account struct {
	namespace, name string
	user            user.Info
	policy          *rbac.Policy
	files           []string
	manifests       []Manifest
	audit           *audit // nil until the control plane starts
	kubeconfig      string // of the operator; empty until the permissions are granted
}

// planAccount reads the manifests, so that mistakes are reported before anything is started.
func (r *runner) planAccount() error {
	if r.AsAccount == "" {
		return nil
	}
	switch r.On {
	case OnMemory:
		return errors.New("--as-service-account needs an API server that enforces RBAC, and the one in memory does not: use --on controlplane")
	case OnCluster:
		return errors.New("--as-service-account needs a control plane of its own, whose audit shows what is refused: use --on controlplane")
	}
	files, err := chosen(r.RBAC, r.project.RBACFiles)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no config/rbac beside or above the package, so that a ServiceAccount may do nothing: --rbac names a directory with roles and bindings")
	}
	a := &account{files: files}
	if a.policy, err = rbac.Read(files...); err != nil {
		return err
	}
	name := r.AsAccount
	if name == OnlyAccount {
		name = ""
		if len(a.policy.Accounts()) == 0 {
			return fmt.Errorf("no binding in %s names a ServiceAccount: bind the role to one", strings.Join(files, ", "))
		}
	}
	if a.user, err = a.policy.Account(name); err != nil {
		return fmt.Errorf("--as-service-account: %w", err)
	}
	if a.namespace, a.name, err = serviceaccount.SplitUsername(a.user.GetName()); err != nil {
		return err
	}
	for _, file := range files {
		manifests, err := ReadManifests(file)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			if gv := m.Object.GroupVersionKind().GroupVersion(); gv == rbacv1.SchemeGroupVersion || m.Object.GetKind() == "Namespace" || m.Object.GetKind() == "ServiceAccount" {
				a.manifests = append(a.manifests, m)
			}
		}
	}
	slices.SortStableFunc(a.manifests, func(x, y Manifest) int { return cmp.Compare(orderOf(x), orderOf(y)) })
	r.account = a
	return nil
}

// orderOf returns the place of a manifest in the order in which they are applied.
func orderOf(m Manifest) int {
	switch m.Object.GetKind() {
	case "Namespace":
		return 0
	case "ServiceAccount":
		return 1
	}
	return 2
}

// auditFlags starts the audit, and returns the flags of the programs of the control plane.
func (a *account) auditFlags() (map[string][]string, error) {
	if a == nil {
		return nil, nil
	}
	var err error
	if a.audit, err = newAudit(a.user.GetName()); err != nil {
		return nil, err
	}
	return map[string][]string{"kube-apiserver": a.audit.flags()}, nil
}

// closeAudit ends the audit, if there is one.
func (a *account) closeAudit() error {
	if a == nil || a.audit == nil {
		return nil
	}
	return a.audit.close()
}

// refused returns a channel that is closed when the operator was refused something, or nil if it
// runs as administrator.
func (a *account) refused() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.audit.refused
}

// grant applies the manifests, and writes the kubeconfig with which the operator is its
// ServiceAccount.
func (r *runner) grant(ctx context.Context) error {
	a := r.account
	if a == nil {
		return nil
	}
	st := r.steps.begin("permissions", "granting")
	defer st.quit()
	patience := retryFor
	for _, m := range a.manifests {
		if err := r.cluster.apply(ctx, m, a.namespace, &patience, st.say); err != nil {
			return err
		}
	}
	if err := a.awaitAggregation(ctx, r.plane, r.complete, st); err != nil {
		return err
	}
	token, err := r.cluster.tokenOf(ctx, a.namespace, a.name)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["run"] = &clientcmdapi.Cluster{Server: r.cluster.config.Host, CertificateAuthorityData: r.cluster.config.CAData}
	config.AuthInfos["run"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["run"] = &clientcmdapi.Context{Cluster: "run", AuthInfo: "run"}
	config.CurrentContext = "run"
	a.kubeconfig = filepath.Join(a.audit.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, a.kubeconfig); err != nil {
		return fmt.Errorf("writing the kubeconfig of the operator: %w", err)
	}
	st.done(fmt.Sprintf("ServiceAccount %s/%s, with the rules of %s", a.namespace, a.name, summary(a.files)))
	return nil
}

// awaitAggregation waits until the cluster p is complete if its controllers have to fill a
// ClusterRole: without its rules, the operator would be refused everything.
func (a *account) awaitAggregation(ctx context.Context, p plane, complete <-chan struct{}, st *step) error {
	for _, m := range a.manifests {
		if _, aggregated := m.Object.Object["aggregationRule"]; !aggregated {
			continue
		}
		st.say("waiting for the controllers, which fill ClusterRole " + m.Object.GetName())
		select {
		case <-complete:
			return nil
		case <-failed(p):
			return failure(p)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// tokenSeconds is how long a token is valid: longer than a run.
const tokenSeconds = 24 * 60 * 60

// tokenOf returns a token of a ServiceAccount, which it creates if it does not exist.
func (c *cluster) tokenOf(ctx context.Context, namespace, name string) (string, error) {
	accounts := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace)
	manifest := Manifest{File: "ServiceAccount", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace},
	}}}
	patience := retryFor
	if err := c.apply(ctx, manifest, namespace, &patience, func(string) {}); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	if err != nil {
		return "", err
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetName(name)
	answer, err := accounts.Create(ctx, obj, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	return token, err
}

// judge returns the error of a run whose operator was refused something, and otherwise lists the
// rules that it has not used.
func (a *account) judge(err error, definitions []*apiextensionsv1.CustomResourceDefinition, steps *steps) error {
	if a == nil {
		return err
	}
	used, refusals := a.audit.seen()
	if len(refusals) > 0 {
		missing := fmt.Errorf("%w:\n%s", ErrRefused, indented(a.explain(refusals, kindsOfOwners(definitions))))
		if err == nil || errors.Is(err, ErrRefused) {
			return missing
		}
		return fmt.Errorf("%w\n%w", missing, err)
	}
	if err == nil || errors.Is(err, ErrWatchingInterrupted) {
		a.listUnused(used, steps)
	}
	return err
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// kindsOfOwners are the resources of the operator's definitions, which own what it creates.
func kindsOfOwners(definitions []*apiextensionsv1.CustomResourceDefinition) []permission.Need {
	var owners []permission.Need
	for _, d := range definitions {
		owners = append(owners, permission.Need{Group: d.Spec.Group, Resource: d.Spec.Names.Plural + "/finalizers", Verb: "update"})
	}
	return owners
}

// explain says which rules are missing, each once, in the order of the refusals.
func (a *account) explain(refusals []refusal, owners []permission.Need) string {
	var lines []string
	named := map[string]bool{} // the same rule is missing in each namespace
	for _, refused := range refusals {
		if refused.need.Verb != "" && named[refused.need.String()] {
			continue
		}
		named[refused.need.String()] = true
		needs, answer := []permission.Need{refused.need}, ""
		if refused.need.Verb == "" {
			answer = fmt.Sprintf("a write to %s was refused: %s", refused.need.What(), refused.text)
			needs = nil
			if strings.Contains(refused.text, cannotBlock) {
				needs = owners
			}
		}
		for _, m := range a.policy.Compare(a.user, needs).Missing {
			lines = append(lines, m.Text)
			answer = ""
		}
		if answer != "" {
			lines = append(lines, answer)
		} else if refused.need.Verb != "" && len(a.policy.Compare(a.user, needs).Missing) == 0 {
			lines = append(lines, refused.text) // the cluster has other rules than the files
		}
	}
	var once []string
	for _, line := range lines {
		if !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	return strings.Join(once, "\n")
}

// listUnused lists the rules that no request has used, with the places that ask for them.
func (a *account) listUnused(used []permission.Need, steps *steps) {
	unused := slices.DeleteFunc(a.policy.Compare(a.user, used).Unused, func(g rbac.Grant) bool {
		// The check of owner references is no request.
		return !slices.ContainsFunc(g.Rule.Resources, func(name string) bool { return !strings.HasSuffix(name, "/finalizers") })
	})
	if len(unused) == 0 {
		steps.remark("permissions", "the operator has used all rules")
		return
	}
	requesting, err := markers.For(a.files)
	if err != nil {
		requesting = nil // they are only shown
	}
	for _, g := range unused {
		text := "unused: " + g.String()
		for _, m := range requesting {
			if m.Requests(g) {
				text += ", requested by " + m.Place.String()
			}
		}
		steps.remark("permissions", text)
	}
}

// RBACFiles returns the files of the first directory config/rbac, from the package's directory up to
// the root of its module.
func (p *Project) RBACFiles() ([]string, error) {
	files, err := p.conventional("config/rbac")
	here, wdErr := os.Getwd()
	for i, file := range files {
		if rel, relErr := filepath.Rel(here, file); wdErr == nil && relErr == nil && len(rel) < len(file) {
			files[i] = rel
		}
	}
	return files, err
}
