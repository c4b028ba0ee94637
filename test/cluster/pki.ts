import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

interface Identity {
  readonly name: string;
  /** As openssl writes it; the organisation is the group, the common name the user. */
  readonly subject: string;
  readonly alternativeNames?: string;
}

const IDENTITIES: readonly Identity[] = [
  {
    name: 'apiserver',
    subject: '/CN=kube-apiserver',
    alternativeNames: 'DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1',
  },
  { name: 'admin', subject: '/O=system:masters/CN=admin' },
  { name: 'controller-manager', subject: '/CN=system:kube-controller-manager' },
];

/**
 * Writes an authority, one certificate per identity (`apiserver`, `admin`, `controller-manager`: `.crt` and `.key`) and the
 * key pair of service-account tokens (`sa.key`, `sa.pub`) into the folder. Valid for two days: no cluster of a test lives longer.
 */
export async function writePki(folder: string): Promise<void> {
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
  await Promise.all([
    openssl(
      'req',
      '-x509',
      ...NEW_KEY,
      '-days',
      '2',
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-subj',
      '/CN=temper-test',
    ),
    openssl('genrsa', '-out', 'sa.key', '2048').then(() =>
      openssl('rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub'),
    ),
  ]);
  await Promise.all(IDENTITIES.map((identity, index) => writeIdentity(folder, identity, index + 1)));
}

async function writeIdentity(folder: string, { name, subject, alternativeNames }: Identity, serial: number) {
  const names = alternativeNames === undefined ? '' : `subjectAltName=${alternativeNames}\n`;
  await writeFile(join(folder, `${name}.ext`), `extendedKeyUsage=serverAuth,clientAuth\n${names}`);
  const request = ['req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject];
  await run('openssl', request, { cwd: folder });
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', String(serial), '-days', '2'];
  const sign = ['x509', '-req', '-in', `${name}.csr`, ...signer, '-extfile', `${name}.ext`, '-out', `${name}.crt`];
  await run('openssl', sign, { cwd: folder });
}
