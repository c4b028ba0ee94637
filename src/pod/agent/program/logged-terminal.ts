import { isTemperError } from '../../../lib/errors.ts';
import { type JsonObject, member, textAt } from '../../../lib/json.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Terminal, TerminalRequest } from '../../../toolbox/terminal/port.ts';

/**
 * Logs one line per program, as soon as it has ended, so that the log has it when the pod is removed: for whom it ran, how it ended and
 * how much it wrote; never its arguments, its input or its output. A failure to log changes nothing for the call.
 */
export function loggedTerminal(terminal: Terminal, { log, clock }: { log: Logger; clock: Clock }): Terminal {
  return {
    async run(request, op) {
      const started = clock.monotonic();
      const report = (outcome: object): void => {
        const milliseconds = Math.round(clock.monotonic() - started);
        write(log, { ...factsOf(request), ...outcome, milliseconds });
      };
      try {
        const result = await terminal.run(request, op);
        report(endOf(result));
        return result;
      } catch (error) {
        report({ code: isTemperError(error) ? error.code : 'TEMPER_INTERNAL' });
        throw error;
      }
    },
  };
}

function factsOf({ program, caller }: TerminalRequest): object {
  const { message: messageId, ...rest } = caller ?? {};
  return { program, ...rest, ...(messageId === undefined ? {} : { messageId }) };
}

function endOf(result: JsonObject): object {
  const facts = ['exitCode', 'signal', 'ended', 'killedProcesses'].flatMap((name) => {
    const value = member(result, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(facts),
    stdoutBytes: bytesOf(result, 'stdout'),
    stderrBytes: bytesOf(result, 'stderr'),
  };
}

/** With what the result omits. */
function bytesOf(result: JsonObject, stream: 'stdout' | 'stderr'): number {
  const omitted = member(result, `${stream}OmittedBytes`);
  return Buffer.byteLength(textAt(result, [stream])) + (typeof omitted === 'number' ? omitted : 0);
}

function write(log: Logger, facts: object): void {
  try {
    log.info(facts, 'a program ended');
  } catch {
    // The call goes on without its line.
  }
}
