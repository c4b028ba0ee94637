/** The error codes of withheld sources, a part of `ERROR_CODES`. */
export const SOURCE_ERROR_CODES = {
  TEMPER_SOURCE_UNAVAILABLE: {
    meaning:
      'A process of the cluster has no key of withheld sources (`forge.persistSource: false`), so it can neither store nor read one.',
    fix: 'Wait; the request is retried. If the error persists, check that the Secret `temper-source-keys` exists and that the gateway mounts it.',
  },
} as const;
