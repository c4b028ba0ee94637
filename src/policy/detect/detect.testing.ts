/** Assembled at run time, so that secret scanners do not report this file. */
export const SECRETS: readonly string[] = [
  `AKIA${'Q7'.repeat(8)}`,
  `use ghp_${'a1B2'.repeat(9)} now`,
  `github_pat_${'a1B2'.repeat(9)}`,
  `key=sk-ant-${'x9'.repeat(20)}`,
  `sk-${'aB3'.repeat(16)}`,
  `xoxb-${'1234567890'.repeat(3)}`,
  `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(30)}`,
  ['-----BEGIN RSA', 'PRIVATE', 'KEY-----'].join(' '),
  'https://alice:hunter2@example.com/path',
  `curl -H "Authorization: Bearer ${'t0ken'.repeat(6)}"`,
];

/** Texts that look like credentials and are none. */
export const HARMLESS: readonly string[] = [
  'sk-learn is a library, and sk-some-long-css-class-name-of-a-page is a class',
  'see https://example.com/a@b and mail me@example.com: thanks',
  'eyJ is how a token begins',
  '-----BEGIN CERTIFICATE-----',
  'Bearer of many gifts',
  'Basic training for the whole team of clerks',
  'order 4111-2222 from 2026-11-21, totals 1234567890123 and 12 34 56',
];
