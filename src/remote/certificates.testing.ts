import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** PEM texts. */
export interface Identity {
  key: string;
  certificate: string;
  authority: string;
}

/** An authority of its own and one certificate from it, for a server of this name. Files are written into the folder. */
export async function issueIdentity(folder: string, prefix: string, name: string): Promise<Identity> {
  const at = (file: string): string => join(folder, `${prefix}-${file}`);
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
  const own = ['-days', '2', '-keyout', at('ca.key'), '-out', at('ca.crt'), '-subj', `/CN=${prefix}`];
  await openssl('req', '-x509', ...NEW_KEY, ...own);
  await openssl('req', ...NEW_KEY, '-keyout', at('tls.key'), '-out', at('tls.csr'), '-subj', `/CN=${name}`);
  await writeFile(at('ext'), `extendedKeyUsage=serverAuth\nsubjectAltName=DNS:${name}\n`);
  const signer = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-set_serial', '1', '-days', '2'];
  await openssl('x509', '-req', '-in', at('tls.csr'), ...signer, '-extfile', at('ext'), '-out', at('tls.crt'));
  const [key, certificate, authority] = await Promise.all(
    ['tls.key', 'tls.crt', 'ca.crt'].map((file) => readFile(at(file), 'utf8')),
  );
  return { key: key ?? '', certificate: certificate ?? '', authority: authority ?? '' };
}

export interface DoorTexts {
  url: string;
  name: string;
  authority: string;
  token: string;
}

/** The files a pod is given: the folder of the doors, and the token beside it. */
export async function writeDoors(folder: string, door: Partial<DoorTexts>): Promise<void> {
  const files = { gateway: door.url, 'gateway-name': door.name, 'ca.crt': door.authority, token: door.token };
  for (const [file, text] of Object.entries(files)) if (text !== undefined) await writeFile(join(folder, file), text);
}
