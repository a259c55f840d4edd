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
/** A second realm of the same KDC. Its users get good tickets for the service, too. */
export const OTHER_REALM = 'OTHER.TEST';
export const SERVICE = 'HTTP@auth.platform.test';

/** Where Debian keeps the KDC's programs; not on every user's PATH. */
const PATH = [process.env.PATH, '/usr/sbin', '/usr/bin'].join(delimiter);
const PROGRAMS = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit'];
const NOBODY = 65_534;
/** Nothing here needs root, so nothing here runs as root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/**
 * Prints a ticket; given the server's reply on standard input, checks it. The native library reads the
 * process's real environment, so it needs a process.
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

/** Why there can be no realm on this machine; null when there can. */
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
 * A private MIT Kerberos realm: configuration, database, port and files of its own, under one temporary
 * folder.
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

  /** Both realms with the service's keytab, and a running KDC. */
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
   * A fresh ticket of a user for the service, as a browser sends it. `client` can check the server's reply.
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
    // In the workspace, where the package is; as this user, who can read it.
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
   * What a process needs in order to accept tickets. Each replica has its own replay cache, as on machines of
   * their own.
   * @param clockSkewSeconds for how long a ticket is good beyond its time
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
    await eventually(() => this.answers());
  }

  private async answers(): Promise<void> {
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
      // A program that needs no input may have ended; its exit code tells whether it did its work.
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(input);
    });
  }
}

/** The next line a program writes. @throws {Error} with its complaint when it ends instead */
async function nextOutput(program: ChildProcessWithoutNullStreams): Promise<string> {
  let complaint = '';
  program.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const ended = once(program, 'close').then(() => Promise.reject(new Error(`no output: ${complaint}`)));
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
