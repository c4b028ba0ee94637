import { FORGED_REDIRECTS, FORGED_URLS } from '../../../support/egress/forged-urls.ts';
import { namesInside } from '../../../support/egress/inside-addresses.ts';
import { calls, forgeCall, type Rule } from '../forging-script.ts';
import { PUBLIC_ADDRESS, REBINDING_HOST } from './addresses.ts';

/** The message to the agent that fetches. */
export const FETCH_ALL = 'fetch all of them';
const SYSTEM = 'You are fetcher';
/** A run of a tool makes at most 50 host calls. */
const URLS_PER_CALL = 45;
const REBINDING_TIMES = 8;

const redirectTo = (url: string): string => `https://moved.example.com/moved?${encodeURIComponent(url)}`;

/** What the policy of the agent allows. */
export const PERMITTED_URLS: readonly string[] = [
  'https://api.example.com/ok',
  'https://API.Example.com:443/ok',
  'https://xn--bcher-kva.example.com/ok',
  redirectTo('https://api.example.com/ok'),
];
/** The name leads inside every other time. */
export const REBINDING_URLS: readonly string[] = Array.from(
  { length: REBINDING_TIMES },
  (_, index) => `https://${REBINDING_HOST}/${index}`,
);
export const REFUSED_URLS: readonly string[] = [
  ...FORGED_URLS,
  ...FORGED_REDIRECTS.map(redirectTo),
  ...Object.keys(namesInside('example.com', PUBLIC_ADDRESS)).map((name) => `https://${name}/ok`),
];

const BATCHES: readonly (readonly string[])[] = [
  [...PERMITTED_URLS, ...REBINDING_URLS],
  ...Array.from({ length: Math.ceil(REFUSED_URLS.length / URLS_PER_CALL) }, (_, index) =>
    REFUSED_URLS.slice(index * URLS_PER_CALL, (index + 1) * URLS_PER_CALL),
  ),
];

/** It says of each URL which status or which error came of it, and goes on. */
const REACH_HOSTS = {
  name: 'reach_hosts',
  description: 'Says of each address which status or which error came of it.',
  inputSchema: {
    type: 'object',
    properties: { urls: { type: 'array', items: { type: 'string' } } },
    required: ['urls'],
  },
  outputSchema: {
    type: 'object',
    properties: { outcomes: { type: 'array', items: { type: 'string' } } },
    required: ['outcomes'],
  },
  implementation: {
    mode: 'sandbox',
    code: [
      'async function execute({ urls }) {',
      '  const outcomes = [];',
      '  for (const url of urls) {',
      '    try {',
      '      outcomes.push(String((await fetch(url)).status));',
      '    } catch (error) {',
      '      outcomes.push(String(error.code));',
      '    }',
      '  }',
      '  return { outcomes };',
      '}',
    ].join('\n'),
    allowlist: ['fetch'],
    domains: ['*.example.com'],
  },
  testCases: [
    {
      input: { urls: ['https://api.example.com/'] },
      fixtures: [{ tool: 'fetch', output: { status: 200 } }],
      expectedOutput: { outcomes: ['200'] },
    },
  ],
};

/** One message: the agent forges the tool, calls it for all URLs in the same answer, and replies with the outcomes of each call. */
export function fetchingRules(): Rule[] {
  const uses = BATCHES.map((urls, index) => ({ id: `batch-${index}`, name: REACH_HOSTS.name, arguments: { urls } }));
  const text = uses.map(({ id }) => `{{toolCall.${id} | json}}`).join('\n');
  return [
    calls(FETCH_ALL, SYSTEM, [forgeCall(REACH_HOSTS), ...uses]),
    { name: 'fetcher has finished', when: { system: SYSTEM, last: 'tool' }, answer: { text } },
  ];
}

/** The outcome of each URL, from the reply of the agent. */
export function outcomesIn(reply: string): Record<string, string> {
  const urls = BATCHES.flat();
  const outcomes = reply.split('\n').flatMap((line) => (JSON.parse(line) as { outcomes: string[] }).outcomes);
  if (outcomes.length !== urls.length)
    throw new Error(`${urls.length} URLs have ${outcomes.length} outcomes: ${reply}`);
  return Object.fromEntries(urls.map((url, index) => [url, outcomes[index] ?? '']));
}
