import type { ReplayScript } from '../../../../src/models/replay/script/script.ts';

/** What each call of the model `scripted` costs. */
export const USAGE_PER_CALL = { inputTokens: 100, outputTokens: 20 } as const;

const NONCE = '{{user | after "-----BEGIN " | before "-----"}}';
const VERDICT = {
  nonce: NONCE,
  lines: [4],
  safety: { passed: true, concerns: [] },
  correctness: { passed: true, failedTests: [] },
  determinism: { likely: true, reasoning: '' },
  bounded: { likely: true, reasoning: '' },
  confidence: 0.9,
  approved: true,
  reasoning: 'fine',
};

/** One provider, which fails for some of its models in the ways that a request of an agent can cause. */
export const SCRIPT: ReplayScript = {
  rules: [
    { when: { model: 'judge' }, answer: { text: JSON.stringify(VERDICT) } },
    {
      when: { model: 'echo' },
      answer: {
        error: { status: 400, type: 'invalid_request_error', message: "'exceeded your current quota' is not valid" },
      },
    },
    {
      when: { model: 'limited' },
      answer: { error: { status: 429, type: 'rate_limit_error', message: 'slow down', retryAfter: 600 } },
    },
    { when: { model: 'broken' }, answer: { error: { status: 500, type: 'server_error', message: 'no' } } },
    { when: { model: 'slow' }, answer: { text: 'late', delayMilliseconds: 600_000 } },
    {
      when: { model: 'dripping' },
      answer: { text: 'word '.repeat(2_000), chunkBytes: 16, chunkDelayMilliseconds: 20 },
    },
    { answer: { text: 'Done.', usage: USAGE_PER_CALL } },
  ],
};

const NAMES = ['judge', 'echo', 'limited', 'broken', 'slow', 'dripping'] as const;

/** Section `models` of the gateway: each name as `default/NAME`, all of one provider. */
export function modelsOf(url: string): object {
  return {
    providers: [{ name: 'replay', type: 'openai', baseUrl: `${url}/v1` }],
    aliases: {
      'default/default': 'replay/scripted',
      ...Object.fromEntries(NAMES.map((name) => [`default/${name}`, `replay/${name}`])),
    },
  };
}
