/** The error codes of pushes to and pulls from an OCI registry, a part of `ERROR_CODES`. */
export const OCI_ERROR_CODES = {
  TEMPER_OCI_UNAUTHORIZED: {
    meaning: 'The OCI registry wants a credential, or refuses the one of the Docker configuration file.',
    fix: 'Log in to the registry, so that `auths` of the file has an entry for its host; the message names what is missing.',
  },
  TEMPER_OCI_FAILED: {
    meaning: 'The OCI registry cannot be reached, must not be reached, or answers with an error.',
    fix: 'The message states the cause; a push or a pull can be repeated at any time.',
  },
  TEMPER_OCI_CONTENT_INVALID: {
    meaning:
      'What the OCI registry sent is not a tool or a skill of Temper, is too large, or does not have the digest that it was asked for.',
    fix: 'Check the reference. If it is right, do not trust the registry: its content was replaced or damaged.',
  },
} as const;
