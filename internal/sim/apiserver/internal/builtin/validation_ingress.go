// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validIngress checks the hosts and paths of an Ingress.
func validIngress(o object) field.ErrorList {
	var errs field.ErrorList
	rules, _ := child(o, "spec")["rules"].([]any)
	for i := range rules {
		rule, _ := rules[i].(object)
		at := field.NewPath("spec", "rules").Index(i)
		host, _ := rule["host"].(string)
		errs = append(errs, validHost(host, at.Child("host"))...)
		paths, _ := child(rule, "http")["paths"].([]any)
		for j := range paths {
			path, _ := paths[j].(object)
			errs = append(errs, validPath(path, at.Child("http", "paths").Index(j).Child("path"))...)
		}
	}
	return errs
}

func validHost(host string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if net.ParseIP(host) != nil {
		errs = append(errs, field.Invalid(at, host, "must be a DNS name, not an IP address"))
	}
	var texts []string
	switch {
	case strings.Contains(host, "*"):
		texts = validation.IsWildcardDNS1123Subdomain(host)
	case host != "":
		texts = validation.IsDNS1123Subdomain(host)
	}
	for _, text := range texts {
		errs = append(errs, field.Invalid(at, host, text))
	}
	return errs
}

func validPath(o object, at *field.Path) field.ErrorList {
	path, _ := o["path"].(string)
	exact := o["pathType"] == "Exact" || o["pathType"] == "Prefix"
	if !exact && (o["pathType"] != "ImplementationSpecific" || path == "") {
		return nil
	}
	var errs field.ErrorList
	if !strings.HasPrefix(path, "/") {
		errs = append(errs, field.Invalid(at, path, "must be an absolute path"))
	}
	if !exact {
		return errs
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(path, part) {
			errs = append(errs, field.Invalid(at, path, "must not contain '"+part+"'"))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(path, end) {
			errs = append(errs, field.Invalid(at, path, "cannot end with '"+end+"'"))
		}
	}
	return errs
}
