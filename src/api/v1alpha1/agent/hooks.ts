import { Type, type Static } from 'typebox';
import { MAX_HOOKS } from '../../limits/hooks.ts';
import { atomicListOf, closed, Duration, setOf } from '../common.ts';

/** The events of the loop that a hook can receive, as manifests name them. */
const HOOK_EVENTS = [
  'TurnStart',
  'Message',
  'Reasoning',
  'ToolCall',
  'ToolResult',
  'TurnEnd',
  'Error',
  'Retry',
] as const;
export type HookEventName = (typeof HOOK_EVENTS)[number];

/** Tools that change the tools of a session or end the message: a hook observes and decides, and does neither. */
export const NO_HOOK_TOOLS: readonly string[] = ['agent_run', 'drop_tool', 'finish', 'forge_tool', 'invoke'];

const HookToolName = Type.String({
  'x-temper-form': 'the name of a tool, such as check_calls, or the name and the digest of a forged tool',
  pattern: '^[a-z][a-z0-9_-]{0,62}(@sha256:[0-9a-f]{64})?$',
  maxLength: 135,
  description:
    'The tool of the agent that runs: a built-in tool, or a forged tool of tier Agent or Shared or an imported one. With `name@sha256:…` only the forged tool with this digest.',
});

export const Hook = Type.Object(
  {
    events: {
      ...setOf(
        Type.Enum([...HOOK_EVENTS]),
        HOOK_EVENTS.length,
        'The events of the loop that the hook receives. Its tool gets the event as its arguments.',
      ),
      minItems: 1,
    },
    tool: HookToolName,
    timeout: Type.Optional({ ...Duration, default: '5s', description: 'Timeout of one run, from 10ms to 60s.' }),
    onFailure: Type.Optional(
      Type.Enum(['Fail', 'Ignore'], {
        description:
          'When the tool fails, is not available, or gives no valid directive: `Fail` refuses the tool call, or ends the message for another event; `Ignore` goes on without the hook. Defaults to `Fail` for `ToolCall` and to `Ignore` for the other events.',
      }),
    ),
  },
  closed,
);
export type Hook = Static<typeof Hook>;

export const Hooks = atomicListOf(
  Hook,
  MAX_HOOKS,
  'Tools that run at events of the loop and may refuse a call, end the message or let it go on. They never permit what the policy denies.',
);
