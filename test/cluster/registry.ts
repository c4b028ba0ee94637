import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pollAssertion, StopPolling } from '../support/poll.ts';
import { freePorts, hasExited, logTail, type Server } from './process.ts';
import { openServerFolder } from './server-folder.ts';
import { tool } from './tools.ts';

/** A separate OCI registry (CNCF distribution) on loopback, for one user. Disposing kills it and removes its folder. */
export interface OciRegistry extends AsyncDisposable {
  /** `localhost:<port>` */
  readonly host: string;
  readonly username: string;
  readonly password: string;
}

const READY_TIMEOUT_MS = 30_000;
const [USERNAME, PASSWORD] = ['kim', 'pull-secret'];
/** Of the password; the registry accepts bcrypt only. */
const PASSWORD_HASH = '$2b$04$blWVPh0XASBF1ubR84xAVuhQYgTFk89zWFy0Im3q7i2bDgNxmgkXm';

/** Starts a registry. On failure it throws the tail of the log and leaves no process and no file. */
export async function startRegistry(): Promise<OciRegistry> {
  const path = await tool('registry');
  const folder = await openServerFolder('registry');
  const { port } = await freePorts('port');
  const dispose = () => folder[Symbol.asyncDispose]();
  try {
    const config = await writeConfig(folder.path, port);
    await waitUntilReady(await folder.start({ name: 'registry', path, flags: ['serve', config] }), port);
    return { host: `localhost:${port}`, username: USERNAME, password: PASSWORD, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const log = await folder.logTail();
    await dispose();
    throw new Error(`the registry did not start: ${String(error)}\n${log}`, { cause: error });
  }
}

async function writeConfig(folder: string, port: number): Promise<string> {
  await writeFile(join(folder, 'htpasswd'), `${USERNAME}:${PASSWORD_HASH}\n`, { mode: 0o600 });
  const config = join(folder, 'config.yaml');
  await writeFile(
    config,
    `version: 0.1
log: { level: warn }
storage: { filesystem: { rootdirectory: ${join(folder, 'blobs')} } }
http: { addr: "127.0.0.1:${port}", secret: test }
auth: { htpasswd: { realm: registry, path: ${join(folder, 'htpasswd')} } }
`,
  );
  return config;
}

async function waitUntilReady(server: Server, port: number): Promise<void> {
  await pollAssertion(
    'the registry to answer',
    async () => {
      if (hasExited(server)) throw new StopPolling(`the registry exited: ${await logTail(server)}`);
      const response = await fetch(`http://127.0.0.1:${port}/v2/`);
      await response.arrayBuffer();
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}
