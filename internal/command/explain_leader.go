// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// leader returns, if the replica that was asked is not the leader, which one is and how to ask it,
// according to its Lease; if the Lease can't be read, how to find the leader. Otherwise it returns
// an empty text.
func (f *explainFlags) leader(ctx context.Context, config *rest.Config, header http.Header) string {
	if header.Get(explanation.LeaderHeader) != "false" {
		return ""
	}
	namespace, host := header.Get(explanation.NamespaceHeader), header.Get(explanation.HostHeader)
	if len(validation.IsDNS1123Label(namespace)) > 0 { // it would be part of a command
		namespace = ""
	}
	inNamespace := ""
	if namespace != "" {
		inNamespace = " -n " + namespace
	}
	leases, err := leasesIn(ctx, config, namespace)
	if err != nil {
		return fmt.Sprintf("; kubectl get lease%s names the leader in its column HOLDER (reading it: %v)", inNamespace, err)
	}
	lease, pod := leaseBeside(host, leases)
	if lease == nil {
		return fmt.Sprintf("; kubectl get lease%s names the leader in its column HOLDER", inNamespace)
	}
	said := fmt.Sprintf("; the leader is %s, says Lease %s/%s", pod, lease.Namespace, lease.Name)
	if namespace == "" { // the replica is not in a Pod
		return said
	}
	return fmt.Sprintf("%s: kubectl port-forward -n %s pod/%s 8443", said, lease.Namespace, pod)
}

// leasesIn reads the Leases of a namespace, or of all if it is empty.
func leasesIn(ctx context.Context, config *rest.Config, namespace string) ([]coordinationv1.Lease, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	list, err := client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, err
	}
	var leases coordinationv1.LeaseList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &leases); err != nil {
		return nil, err
	}
	return leases.Items, nil
}

// leaseBeside returns the Lease that a replica of the same operator as host holds, with the host of
// that replica; nil if it is not certain. By the conventions of controller-runtime and of
// Deployments, the holder is host_uuid, and the hosts of replicas differ after their last hyphen,
// or those of an older revision after the last but one.
func leaseBeside(host string, leases []coordinationv1.Lease) (lease *coordinationv1.Lease, holder string) {
	for range 2 {
		i := strings.LastIndexByte(host, '-')
		if i < 0 {
			return nil, ""
		}
		host = host[:i]
		for j := range leases {
			by, ok := holderOf(&leases[j])
			if !ok || !strings.HasPrefix(by, host+"-") {
				continue
			}
			if lease != nil {
				return nil, ""
			}
			lease, holder = &leases[j], by
		}
		if lease != nil {
			return lease, holder
		}
	}
	return nil, ""
}

// holderOf returns the host that holds a Lease now, and whether there is one.
func holderOf(lease *coordinationv1.Lease) (host string, ok bool) {
	s := lease.Spec
	if s.HolderIdentity == nil || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return "", false
	}
	if time.Since(s.RenewTime.Time) > time.Duration(*s.LeaseDurationSeconds)*time.Second {
		return "", false
	}
	host, _, ok = strings.Cut(*s.HolderIdentity, "_")
	return host, ok && len(validation.IsDNS1123Subdomain(host)) == 0
}
