import type { SessionStreamLine, UserMessageReceipt } from '../../../gateway-api/user-api.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { CliIo } from '../../io.ts';
import type { GatewayUserClient } from '../gateway-user-client.ts';
import { RetryBudget } from '../retry-budget.ts';
import { behind, type Position, readSessionLines, SessionPrinter } from './session-lines.ts';

export interface Followed {
  readonly gateway: GatewayUserClient;
  readonly agent: string;
  readonly receipt: UserMessageReceipt;
  readonly output: 'text' | 'json';
}

/** Limit of consecutive connections without a new line. */
const MAX_EMPTY_ATTEMPTS = 60;

/** Prints events until the message is answered. False when it failed or was refused. A stream that ends early is resumed after its last line. */
export async function followMessage(followed: Followed, io: CliIo): Promise<boolean> {
  const { agent, receipt, output } = followed;
  const printer = new SessionPrinter(agent, output, io);
  let position: Position = { after: receipt.after, skip: 0 };
  const retries = new RetryBudget(MAX_EMPTY_ATTEMPTS, io);
  for (;;) {
    const resumed = position;
    for await (const line of openStream(followed, position)) {
      position = behind(line, position);
      printer.print(line);
      if (line.kind !== 'event' && line.message === receipt.id) {
        return line.kind === 'reply' && line.finishReason !== 'refusal';
      }
    }
    if (position !== resumed) retries.reset();
    if (!(await retries.wait())) break;
  }
  const hint = `the answer is stored; read it with: temper trace ${receipt.session} --agent ${agent}`;
  throw new TemperError(
    'TEMPER_GATEWAY_UNREACHABLE',
    `the gateway closes every connection without new events; ${hint}`,
  );
}

async function* openStream(
  { gateway, agent, receipt: { id, session } }: Followed,
  position: Position,
): AsyncGenerator<SessionStreamLine> {
  try {
    yield* readSessionLines(gateway, { agent, session }, position, { message: id, follow: 'true' });
  } catch (error) {
    // A gateway that is being replaced returns soon; an error that must not be retried is final.
    if (isTemperError(error) && error.retry !== 'never') return;
    throw error;
  }
}
