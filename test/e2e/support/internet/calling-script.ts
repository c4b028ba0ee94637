import { FORGED_REDIRECTS } from '../../../support/egress/forged-urls.ts';
import { namesInside } from '../../../support/egress/inside-addresses.ts';
import type { Rule } from '../forging-script.ts';
import { PUBLIC_ADDRESS } from './addresses.ts';
import { batches, batchRules, stepRules } from './scripted-steps.ts';

/* The scripted answers of the agent that calls services, MCP servers and an agent elsewhere. */

export const CORRESPONDENT = 'correspondent';
export const ASK_ALL = 'ask all of them';

const STEPS = {
  rated: ['exchange_rate', { from: 'EUR', to: 'USD' }],
  asked: ['ask_archive', { message: 'Which exports are there?' }],
  answered: [
    'ask_archive',
    { message: '2019', context: '{{toolCall.asked.context}}', task: '{{toolCall.asked.task}}' },
  ],
  read: ['fetch_page', { url: 'http://tide.example.com/' }],
  searched: ['web_search', { query: 'okapi' }],
  unpermitted: ['unpermitted_rate', { from: 'EUR', to: 'USD' }],
} as const;

/** MCP servers that no agent may reach, by the names of their tools. */
export const INSIDE_SERVERS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...Object.keys(namesInside('example.com', PUBLIC_ADDRESS)).map((name) => `https://${name}/mcp`),
    ...FORGED_REDIRECTS.map((url) => `https://moved.example.com/moved/${encodeURIComponent(url)}`),
  ].map((url, index) => [`inside_${index}`, url]),
);
export const INSIDE_CALLS: readonly (readonly string[])[] = batches(Object.keys(INSIDE_SERVERS));
export const insideCalls = (part: number): string => `call what is inside, part ${part}`;

export function callingRules(): Rule[] {
  return [
    ...stepRules(CORRESPONDENT, ASK_ALL, STEPS),
    ...INSIDE_CALLS.flatMap((tools, part) =>
      batchRules(
        CORRESPONDENT,
        insideCalls(part),
        tools.map((tool) => [tool, {}] as const),
      ),
    ),
  ];
}
