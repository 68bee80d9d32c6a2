// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

// A level is where in an object a map stands, as far as that matters: some fields of an object and
// of its metadata never are in an entry of the managed fields.
type level int

const (
	levelOther level = iota
	levelObject
	levelMetadata
	levelAnnotations
)

func (l level) below(key string) level {
	switch {
	case l == levelObject && key == "metadata":
		return levelMetadata
	case l == levelMetadata && key == "annotations":
		return levelAnnotations
	}
	return levelOther
}

// ignores reports whether a field is no part of the intent.
func (l level) ignores(key string) bool {
	switch l {
	case levelMetadata:
		switch key {
		case "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields":
			return true
		}
	case levelAnnotations:
		return key == Annotation
	}
	return false
}

// unrecorded reports whether the API server never records a field in the managed fields.
func (l level) unrecorded(key string) bool {
	switch l {
	case levelObject:
		return key == "apiVersion" || key == "kind"
	case levelMetadata:
		return key == "name" || key == "namespace" || l.ignores(key)
	case levelAnnotations:
		return key == Annotation
	}
	return false
}
