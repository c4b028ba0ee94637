import { Type } from 'typebox';
import { DEFAULT_BODY_TOKENS, DEFAULT_INDEX_TOKENS, DEFAULT_UNLOAD_PERCENT } from '../../limits/disclosure.ts';
import { closed, count } from '../common.ts';

export const Disclosure = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum(['Inline', 'Semantic', 'Explore'], {
        default: 'Inline',
        description:
          'Which tools the model gets with each request. `Inline`: all that the agent may call. `Explore`: a map of them, and those that the model loaded. `Semantic`: in addition those that fit the message.',
      }),
    ),
    indexTokens: Type.Optional(
      count(
        500,
        20_000,
        'Maximum number of tokens of one list of tools that the model asks for.',
        DEFAULT_INDEX_TOKENS,
      ),
    ),
    bodyTokens: Type.Optional(
      count(
        1_000,
        100_000,
        'Maximum number of tokens of the definitions of loaded tools. The tool that was loaded first leaves first.',
        DEFAULT_BODY_TOKENS,
      ),
    ),
    unloadPercent: Type.Optional(
      count(
        10,
        95,
        'The share of the context window, in percent, from which on loaded tools leave until the request is below it. The last one stays.',
        DEFAULT_UNLOAD_PERCENT,
      ),
    ),
  },
  {
    ...closed,
    description:
      'How the model gets to know the tools of an agent with many tools. Only with `invocation: Tools` and without `model.agent`.',
  },
);
