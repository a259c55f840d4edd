import { execFile, spawn } from 'node:child_process';
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { eventually, findFreePorts } from '@platform/testing';

export const REALM = 'PLATFORM.TEST';
/** A second realm of the same KDC. Its users also get valid tickets for the service. */
export const OTHER_REALM = 'OTHER.TEST';
export const SERVICE = 'HTTP@auth.platform.test';

/** Debian's folders of the KDC's programs, which are not on every user's PATH. */
const PATH = [process.env.PATH, '/usr/sbin', '/usr/bin'].join(delimiter);
const PROGRAMS = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit'];
const NOBODY = 65_534;
/** Runs as nobody if this process is root, because nothing here needs root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/**
 * Program of the client. It prints a ticket and, given the server's reply on standard input, verifies the
 * reply. It runs in a process of its own, because the native library reads the real environment of its
 * process.
 */
const CLIENT = `
  const kerberos = require('kerberos');
  (async () => {
    const [service, mechanism] = process.argv.slice(1);
    const client = await kerberos.initializeClient(service, { mechOID: kerberos[mechanism] });
    process.stdout.write((await client.step('')) + '\\n');
    for await (const reply of process.stdin) {
      await client.step(reply.toString().trim());
      process.stdout.write(client.contextComplete ? 'confirmed' : 'incomplete');
    }
  })();`;

/** Returns why no realm can run on this machine, or null if one can. */
export function whyNoKerberos(): string | null {
  const folders = PATH.split(delimiter);
  const missing = PROGRAMS.filter((program) => !folders.some((folder) => existsSync(join(folder, program))));
  if (missing.length > 0)
    return `${missing.join(', ')} not found (Debian: krb5-kdc krb5-admin-server krb5-user)`;
  try {
    createRequire(__filename)('kerberos');
    return null;
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return `the package kerberos is not built (Debian: libkrb5-dev; then docker/install-kerberos): ${reason}`;
  }
}

/**
 * A private MIT Kerberos realm. Its configuration, database and files are in one temporary folder; its port
 * is a free one.
 */
export class KerberosRealm {
  readonly keytab: string;
  private readonly clients: ChildProcess[] = [];

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private kdc: ChildProcess | null = null,
  ) {
    this.keytab = join(folder, 'http.keytab');
  }

  /** Creates both realms with the service's keytab, and starts the KDC. */
  static async start(): Promise<KerberosRealm> {
    const folder = await mkdtemp(join(tmpdir(), 'kerberos-realm-'));
    if (UNPRIVILEGED.uid !== undefined) await chown(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    const [port] = (await findFreePorts(1)) as [number];
    const realm = new KerberosRealm(folder, port);
    try {
      await realm.prepare();
      return realm;
    } catch (error) {
      await realm.stop();
      throw error;
    }
  }

  async addUser(name: string, realm = REALM): Promise<void> {
    await this.run('kadmin.local', ['-r', realm, 'addprinc', '-pw', `${name}-password`, name]);
  }

  /**
   * Returns a new ticket of a user for the service, as a browser sends it. `confirm` verifies the server's
   * reply.
   */
  async ticket(
    user: string,
    options: { lifetime?: string; mechanism?: 'SPNEGO' | 'KRB5' } = {},
  ): Promise<{ ticket: string; confirm: (reply: string) => Promise<string> }> {
    const cache = join(this.folder, `cache-${user.replace(/\W/g, '_')}-${options.lifetime ?? ''}`);
    const principal = user.includes('@') ? user : `${user}@${REALM}`;
    const password = `${principal.split('@')[0]}-password\n`;
    await this.run('kinit', ['-l', options.lifetime ?? '1h', '-c', cache, principal], password);
    const mechanism = `GSS_MECH_OID_${options.mechanism ?? 'SPNEGO'}`;
    const env = { ...this.environment(), KRB5CCNAME: `FILE:${cache}` };
    // Runs in the workspace, where the package is installed, and as this user, who can read it.
    const client = spawn(process.execPath, ['-e', CLIENT, SERVICE, mechanism], { env });
    this.clients.push(client);
    const ticket = await nextOutput(client);
    const confirm = (reply: string): Promise<string> => {
      client.stdin.end(`${reply}\n`);
      return nextOutput(client);
    };
    return { ticket, confirm };
  }

  /**
   * Returns the environment of a process that accepts tickets. Each replica has its own replay cache, as if
   * on its own machine.
   * @param clockSkewSeconds time in seconds for which a ticket stays valid after its end
   */
  async acceptorEnvironment(replica: string, clockSkewSeconds = 300): Promise<Record<string, string>> {
    const config = join(this.folder, `krb5-${replica}.conf`);
    await writeFile(config, krb5Conf(this.port, clockSkewSeconds));
    return {
      KRB5_CONFIG: config,
      KRB5_KTNAME: this.keytab,
      KRB5RCACHENAME: `file2:${join(this.folder, `${replica}.rcache`)}`,
    };
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.kill('SIGKILL');
    const { kdc } = this;
    if (kdc !== null && kdc.exitCode === null) {
      kdc.kill('SIGTERM');
      await once(kdc, 'exit');
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  private async prepare(): Promise<void> {
    await writeFile(join(this.folder, 'krb5.conf'), krb5Conf(this.port, 300));
    await writeFile(join(this.folder, 'kdc.conf'), kdcConf(this.folder, this.port));
    for (const realm of [REALM, OTHER_REALM]) {
      await this.run('kdb5_util', ['-r', realm, '-P', 'master-password', 'create', '-s']);
      const service = `HTTP/${SERVICE.split('@')[1]}@${realm}`;
      await this.run('kadmin.local', ['-r', realm, 'addprinc', '-randkey', service]);
      await this.run('kadmin.local', ['-r', realm, 'ktadd', '-k', this.keytab, service]);
    }
    const args = ['-n', '-r', REALM, '-r', OTHER_REALM];
    this.kdc = spawn('krb5kdc', args, { ...UNPRIVILEGED, env: this.environment(), stdio: 'ignore' });
    await eventually(() => this.assertListening());
  }

  private async assertListening(): Promise<void> {
    if (this.kdc !== null && this.kdc.exitCode !== null)
      throw new Error(`the KDC ended: ${await readFile(join(this.folder, 'kdc.log'), 'utf8')}`);
    const socket = connect(this.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  }

  private environment(): NodeJS.ProcessEnv {
    const file = (name: string): string => join(this.folder, name);
    return { PATH, KRB5_CONFIG: file('krb5.conf'), KRB5_KDC_PROFILE: file('kdc.conf'), LC_ALL: 'C' };
  }

  private run(program: string, args: readonly string[], input = ''): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = execFile(
        program,
        args,
        { ...UNPRIVILEGED, env: this.environment(), cwd: this.folder },
        (error, _, stderr) => {
          if (error === null) resolve();
          else reject(new Error(`${program} ${args.join(' ')}: ${stderr}`, { cause: error }));
        },
      );
      // A program that reads no input may have ended already. Its exit code shows whether it succeeded.
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(input);
    });
  }
}

/** Returns the next output of a program. @throws {Error} with its error output if it ends instead */
async function nextOutput(program: ChildProcessWithoutNullStreams): Promise<string> {
  let errorOutput = '';
  program.stderr.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
  const ended = once(program, 'close').then(() => Promise.reject(new Error(`no output: ${errorOutput}`)));
  const [line] = (await Promise.race([once(program.stdout, 'data'), ended])) as [Buffer];
  ended.catch(() => undefined);
  return line.toString().trim();
}

function krb5Conf(port: number, clockSkewSeconds: number): string {
  return `[libdefaults]
  default_realm = ${REALM}
  clockskew = ${clockSkewSeconds}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  ${REALM} = {
    kdc = 127.0.0.1:${port}
  }
  ${OTHER_REALM} = {
    kdc = 127.0.0.1:${port}
  }
`;
}

function kdcConf(folder: string, port: number): string {
  const realm = (name: string): string => `  ${name} = {
    database_name = ${folder}/${name}.db
    key_stash_file = ${folder}/${name}.stash
    acl_file = ${folder}/kadm5.acl
    max_life = 1h
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }
`;
  return `[kdcdefaults]
  kdc_listen = 127.0.0.1:${port}
  kdc_tcp_listen = 127.0.0.1:${port}
[realms]
${realm(REALM)}${realm(OTHER_REALM)}[logging]
  kdc = FILE:${folder}/kdc.log
`;
}
