// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// A process with a server in memory has clients in bubbles of testing/synctest, each with a time of
// its own. Of the handlers of errors that apimachinery comes with, the second sleeps until a
// millisecond after the last error of the process: where that error was in another bubble, or in
// none, it sleeps for years, and the client never stops. So there is the first alone, the log.
func init() {
	if len(utilruntime.ErrorHandlers) == 2 {
		utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	}
}
