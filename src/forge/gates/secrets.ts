import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { findCredential } from '../../policy/detect/credentials.ts';
import type { ForgeViolation } from '../request.ts';

/** Marks of keys that documentation and tests invent. */
const SAMPLE = /example|sample|dummy|fake|test|redacted|placeholder|x{4}|0{4}|1234|abcd|\*{3}/i;
const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,24}PRIVATE KEY-----([^-]{0,400})/g;
const MIN_KEY_CHARACTERS = 64;
/** A password in an address that is a placeholder. */
const SAMPLE_PASSWORD = /:\/\/[^\s"'`/:]{1,80}:(?:pass(?:word|wd)?|pwd?|secret|\$\{[^}]{0,60}\})@/gi;
const WORD = /[\w.+/=~-]{16,4096}/g;

/**
 * Refuses secrets in the parts of a tool that run or are shown to models: every agent and user that may read the tool reads them. Keys that are
 * visibly samples pass, and test cases may hold what their task needs: sample tokens, headers of keys, addresses with passwords.
 */
export function checkSecrets({
  description,
  inputSchema,
  outputSchema,
  implementation,
  tests,
}: ToolArtifact): ForgeViolation[] {
  const { source, steps = [] } = implementation;
  const parts: [field: string, text: string][] = [
    ['description', description],
    ['inputSchema', inputSchema],
    ['outputSchema', outputSchema],
    ['implementation.code', source ?? ''],
    ...steps.map((step): [string, string] => [`the inputMapping of step "${step.name}"`, step.inputMapping]),
  ];
  const found = parts.flatMap(([field, text]) => violation(field, findCredential('', withoutSamples(text))));
  const inTests = tests.flatMap((test, index) =>
    violation(`test case ${index + 1}`, providerKey(JSON.stringify(test))),
  );
  return [...found, ...inTests];
}

function violation(field: string, kind: string | undefined): ForgeViolation[] {
  if (kind === undefined) return [];
  const message = `${field} contains ${kind}; a tool may hold no secret, because every reader of the tool reads it: remove it, or take the value from the input`;
  return [{ code: 'TEMPER_FORGE_STATIC', message }];
}

/** A key of a known provider that is not visibly a sample. Signed tokens, passwords and headers of keys are usual test data. */
function providerKey(text: string): string | undefined {
  const kind = findCredential('', withoutSamples(text));
  return kind?.endsWith('key') || kind?.endsWith('token') ? (kind === 'a signed token' ? undefined : kind) : undefined;
}

/** The text without sample keys, and without headers of private keys that no key follows. */
function withoutSamples(text: string): string {
  return text
    .replaceAll(PRIVATE_KEY, (found, body: string) =>
      body.replaceAll(/\\[nr]|\s/g, '').length >= MIN_KEY_CHARACTERS && !SAMPLE.test(body) ? found : '',
    )
    .replaceAll(SAMPLE_PASSWORD, '://')
    .replaceAll(WORD, (word) => (SAMPLE.test(word) && !word.startsWith('-----') ? '' : word));
}
