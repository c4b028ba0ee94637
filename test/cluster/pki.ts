import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
/** Longer than any test cluster runs. */
const DAYS = ['-days', '30'];

export interface Identity {
  /** The name of the files. */
  readonly name: string;
  /** In openssl's format; the organisation is the group, the common name is the user. */
  readonly subject: string;
  /** In openssl's format, e.g. `DNS:localhost,IP:127.0.0.1`. */
  readonly alternativeNames?: string;
}

/** The names and addresses of an API server inside a cluster with the service range 10.96.0.0/16, and on loopback. */
export const API_SERVER_NAMES =
  'DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:10.96.0.1,IP:127.0.0.1';

/**
 * Writes a CA (`ca.crt`, `ca.key`), a certificate for each identity (`<name>.crt`, `<name>.key`) and the key pair of
 * service-account tokens (`sa.key`, `sa.pub`) into the folder.
 */
export async function writePki(folder: string, identities: readonly Identity[]): Promise<void> {
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
  const authority = ['-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=temper-test'];
  await Promise.all([
    openssl('req', '-x509', ...NEW_KEY, ...DAYS, ...authority),
    openssl('genrsa', '-out', 'sa.key', '2048').then(() =>
      openssl('rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub'),
    ),
  ]);
  await Promise.all(identities.map((identity, index) => writeIdentity(folder, identity, index + 1)));
}

/** Writes the certificate of one more identity, signed by the CA of the folder. */
export async function writeIdentity(
  folder: string,
  { name, subject, alternativeNames }: Identity,
  serial: number,
): Promise<void> {
  const names = alternativeNames === undefined ? '' : `subjectAltName=${alternativeNames}\n`;
  await writeFile(join(folder, `${name}.ext`), `extendedKeyUsage=serverAuth,clientAuth\n${names}`);
  const request = ['req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject];
  await run('openssl', request, { cwd: folder });
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', String(serial), ...DAYS];
  const sign = ['x509', '-req', '-in', `${name}.csr`, ...signer, '-extfile', `${name}.ext`, '-out', `${name}.crt`];
  await run('openssl', sign, { cwd: folder });
}
