/** Metrics that record nothing. They satisfy every metrics interface of the project. */
export const NO_METRICS = { count() {}, gauge() {}, observe() {}, watch() {} };

/** A signal that never aborts. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;
