import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../cluster/process.ts';
import { poll } from '../poll.ts';
import { type GatewayFixture, type GatewayReplica, httpsClient } from './gateway-fixture.ts';

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));

/** `temper serve gateway` as a process of its own. */
export interface GatewayProcess extends Pick<GatewayReplica, 'call'>, AsyncDisposable {
  /** What the process wrote to its standard output. */
  readonly output: string;
  /** Sends the signal and resolves with the exit code when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts a gateway of the fixture and waits until it is ready. Disposing kills it. */
export async function startGatewayProcess(
  fixture: Pick<GatewayFixture, 'folder' | 'replicaConfig'>,
  change: object = {},
): Promise<GatewayProcess> {
  const { port, healthPort } = await freePorts('port', 'healthPort');
  const file = join(fixture.folder, `gateway-${port}.yaml`);
  const [listen, health] = [port, healthPort].map((each) => ({ host: '127.0.0.1', port: each }));
  await writeFile(file, JSON.stringify({ ...fixture.replicaConfig(), listen, health, ...change }));
  const child = spawn(TEMPER, ['serve', 'gateway', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return ended;
  };
  const ready = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}: ${output}`);
    return (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status === 200;
  };
  try {
    await poll('the readiness of the gateway', ready);
  } catch (error) {
    await end('SIGKILL');
    throw new Error(`the gateway did not start: ${output}`, { cause: error });
  }
  return {
    get output() {
      return output;
    },
    call: httpsClient(port),
    end,
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  };
}
