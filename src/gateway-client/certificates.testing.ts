import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** PEM texts. */
export interface TlsIdentity {
  key: string;
  certificate: string;
  authority: string;
}

/** Creates a CA and one certificate it signs, for a server of this name. Writes the files into the folder. */
export async function issueTlsIdentity(folder: string, prefix: string, name: string): Promise<TlsIdentity> {
  const pathOf = (file: string): string => join(folder, `${prefix}-${file}`);
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
  const selfSigned = ['-days', '2', '-keyout', pathOf('ca.key'), '-out', pathOf('ca.crt'), '-subj', `/CN=${prefix}`];
  await openssl('req', '-x509', ...NEW_KEY, ...selfSigned);
  await openssl('req', ...NEW_KEY, '-keyout', pathOf('tls.key'), '-out', pathOf('tls.csr'), '-subj', `/CN=${name}`);
  await writeFile(pathOf('ext'), `extendedKeyUsage=serverAuth\nsubjectAltName=DNS:${name}\n`);
  const signer = ['-CA', pathOf('ca.crt'), '-CAkey', pathOf('ca.key'), '-set_serial', '1', '-days', '2'];
  await openssl(
    'x509',
    '-req',
    '-in',
    pathOf('tls.csr'),
    ...signer,
    '-extfile',
    pathOf('ext'),
    '-out',
    pathOf('tls.crt'),
  );
  const [key, certificate, authority] = await Promise.all(
    ['tls.key', 'tls.crt', 'ca.crt'].map((file) => readFile(pathOf(file), 'utf8')),
  );
  return { key: key ?? '', certificate: certificate ?? '', authority: authority ?? '' };
}

export interface GatewayConfigTexts {
  url: string;
  name: string;
  authority: string;
  token: string;
}

/** Writes the files of a pod: its gateway configuration, and the token beside it. */
export async function writeGatewayConfig(folder: string, endpoint: Partial<GatewayConfigTexts>): Promise<void> {
  const files = {
    gateway: endpoint.url,
    'gateway-name': endpoint.name,
    'ca.crt': endpoint.authority,
    token: endpoint.token,
  };
  for (const [file, text] of Object.entries(files)) if (text !== undefined) await writeFile(join(folder, file), text);
}
