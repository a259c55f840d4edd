import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hash as bcrypt } from '@node-rs/bcrypt';
import { recordSecret } from '@platform/testing';
import { administrator } from './admin-fixture';
import { PASSWORD, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const ISSUER = 'https://login.example.org';
const USERS = ['carl.customer', 'olga.owner', 'rita.resident', 'gina.global', 'lena.legacy'];

describe('administering permissions of applications, external identities and passwords', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  let folder: string;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
    folder = await mkdtemp(join(tmpdir(), 'import-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
    await service.stop();
  });

  const login = async (user: string, password = PASSWORD): Promise<number> =>
    (await service.post('/auth/token/user', { user, password })).status;
  const trail = (object: string): Promise<{ operation: string; name: string; change: object }[]> =>
    service.database.query(
      `SELECT operation, name, change FROM auth.administration_audit
       WHERE object = $1 AND name <> 'demo-reports' ORDER BY audit_id DESC LIMIT 2`,
      [object],
    );

  describe('applications update', () => {
    const signIn = async (userName: string, persona: number) => {
      const secret = {
        applicationKey: 'demo-reports',
        sharedSecret: 'demo-reports-secret-for-local-use-only-000002',
      };
      const { body } = await service.post('/auth/token/trust-simple', { ...secret, userName, persona });
      return { reason: body.rejectionReason, refreshes: body.refreshToken !== null };
    };

    it('changes only the given options, with immediate effect', async () => {
      expect(await signIn('olga.owner', 16)).toEqual({ reason: 8, refreshes: false });
      await admin.json('applications update demo-reports --personas Customer,Owner --refresh');
      expect(await signIn('olga.owner', 16)).toEqual({ reason: 0, refreshes: true });
      await admin.json('applications update demo-reports --subjects Carl.Customer --no-refresh');
      expect(await signIn('olga.owner', 16)).toEqual({ reason: 8, refreshes: false });
      expect(await signIn('carl.customer', 2)).toEqual({ reason: 0, refreshes: false });
      expect(await admin.json('applications update demo-reports --flows trust')).toEqual({
        applicationKey: 'demo-reports',
        allowedFlows: ['trust'],
      });
      expect((await admin.run('applications list')).out).toMatch(
        /demo-reports.*Customer,Owner.*trust +carl\.customer/,
      );
      await admin.json('applications update demo-reports --flows all --subjects anybody');
      expect(await signIn('olga.owner', 16)).toEqual({ reason: 0, refreshes: false });
    });

    it('refuses an unknown application, and a command that changes nothing', async () => {
      expect(await admin.refusal('applications update nobody --refresh')).toContain(
        'no application "nobody"',
      );
      expect((await admin.run('applications update demo-reports')).exitCode).toBe(2);
      expect((await admin.run('applications update demo-reports --subjects a,,b')).exitCode).toBe(2);
    });
  });

  it('adds, lists and removes external identities, and audits each change', async () => {
    const carl = { issuer: ISSUER, subject: 'ext-1', personId: 1001, userId: null };
    expect(await admin.json(`external-identities add ${ISSUER} ext-1 --person 1001`)).toMatchObject(carl);
    await admin.json(`external-identities add ${ISSUER} ext-2 --user 9001`);
    expect(await admin.refusal(`external-identities add ${ISSUER} ext-1 --user 9001`)).toContain(
      'mapped already',
    );
    const listed = await admin.json(`external-identities list --issuer ${ISSUER}`);
    expect(listed).toMatchObject([carl, { subject: 'ext-2', userId: 9001 }]);
    await admin.json(`external-identities remove ${ISSUER} ext-1`);
    expect(await admin.refusal(`external-identities remove ${ISSUER} ext-1`)).toContain('is not mapped');
    expect(await trail('external_identity')).toEqual([
      {
        operation: 'delete',
        name: 'ext-1',
        change: expect.objectContaining({ issuer: ISSUER, person_id: 1001 }),
      },
      {
        operation: 'insert',
        name: 'ext-2',
        change: expect.objectContaining({ issuer: ISSUER, user_id: 9001 }),
      },
    ]);
    for (const wrong of ['', ' --person 1 --user 2', ' --person 0'])
      expect((await admin.run(`external-identities add ${ISSUER} ext-3${wrong}`)).exitCode).toBe(2);
  });

  describe('passwords import', () => {
    const forget = (): Promise<unknown> =>
      service.database.query(`UPDATE person_directory.person SET password_hash = NULL`);
    const hashes = async (): Promise<Record<string, string>> => {
      const rows = await service.database.query<{ name: string; hash: string }>(
        `SELECT user_name_key AS name, coalesce(password_hash, '') AS hash FROM person_directory.person`,
      );
      return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]));
    };
    const digest = (name: string): string => createHash(name).update(PASSWORD).digest('hex');
    const membership = (): { passwordHash: string; salt: string } => {
      const salt = Buffer.from('sixteen bytes...');
      const hash = createHash('sha256').update(salt).update(PASSWORD, 'utf16le').digest('base64');
      return { passwordHash: hash, salt: salt.toString('base64') };
    };

    /** Writes a file with a line for each scheme and six bad lines. */
    async function fileOf(format: 'csv' | 'ndjson'): Promise<{ file: string; secrets: string[] }> {
      const stored = (await hashes())['dora.disabled']!;
      const rows = [
        { userName: 'Carl.Customer', passwordHash: stored },
        { userName: 'olga.owner', passwordHash: await bcrypt(PASSWORD, 4) },
        { userName: 'rita.resident', passwordHash: digest('md5').toUpperCase() },
        { userName: 'gina.global', passwordHash: digest('sha1') },
        { userName: 'lena.legacy', ...membership(), digest: 'sha256' },
        { userName: 'no, body', passwordHash: stored },
        { userName: 'tess.tech', passwordHash: 'not-a-hash' },
        { userName: 'olga.owner', passwordHash: stored },
        { userName: 'tess.tech', ...membership(), digest: 'sha1' },
      ];
      const cells = (each: object): string =>
        ['userName', 'passwordHash', 'salt', 'digest']
          .map((name) => `"${(each as Record<string, string>)[name] ?? ''}"`)
          .join(',');
      const lines =
        format === 'csv'
          ? [
              '\uFEFFuserName,passwordHash,salt,digest',
              ...rows.map(cells),
              `carl.customer,${stored}`,
              'a"b,c,d,e',
              '',
            ]
          : [...rows.map((each) => JSON.stringify(each)), `{"userName":"${stored}"`, '[]', ''];
      const file = join(folder, `passwords.${format}`);
      await writeFile(file, lines.join(format === 'csv' ? '\r\n' : '\n'));
      const secrets = rows.map(({ passwordHash }) => passwordHash).filter((each) => each !== 'not-a-hash');
      for (const each of secrets) recordSecret('imported hash', each);
      return { file, secrets };
    }

    it.each(['csv', 'ndjson'] as const)(
      'imports every scheme from %s and reports the bad lines',
      async (format) => {
        const { file, secrets } = await fileOf(format);
        const before = await hashes();
        await forget();
        await service.database.query(
          'UPDATE person_directory.person SET password_hash = $1 WHERE person_id = 1007',
          [before['dora.disabled']],
        );
        const command = `passwords import ${file} --store PERSON_DIRECTORY --format ${format}`;
        const dry = await admin.json(`${command} --dry-run`);
        expect(dry).toMatchObject({ dryRun: true, imported: 5, kept: 0 });
        expect(Object.values(await hashes()).filter((hash) => hash !== '')).toHaveLength(1);

        const report = join(folder, 'bad-lines.ndjson');
        const { exitCode, out, err } = await admin.run(`${command} --bad-lines ${report}`);
        expect([exitCode, err]).toEqual([0, expect.stringMatching(/line \d+: 5 imported/)]);
        const bad = (await readFile(report, 'utf8'))
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as object);
        expect(bad).toHaveLength(6);
        expect(bad).toContainEqual({ line: format === 'csv' ? 7 : 6, problem: 'no such account' });
        for (const secret of secrets) expect(out + err + JSON.stringify(bad)).not.toContain(secret);

        const after = await hashes();
        expect(after['rita.resident']).toMatch(/^wrapped-md5\$argon2id\$/);
        expect(after['gina.global']).toMatch(/^wrapped-sha1\$argon2id\$/);
        for (const user of USERS) expect([user, await login(user)]).toEqual([user, 200]);
        expect(await login('carl.customer', digest('md5'))).toBe(401);

        expect(await admin.json(command)).toMatchObject({ imported: 0, kept: 6 });
        const again = await hashes();
        expect(await admin.json(`${command} --replace --from-line 4`)).toMatchObject({
          imported: format === 'csv' ? 4 : 3,
        });
        expect((await hashes())['gina.global']).not.toBe(again['gina.global']);
        expect((await hashes())['carl.customer']).toBe(again['carl.customer']);
      },
    );

    it('refuses a file that does not exist, or whose first line lacks the column names', async () => {
      const importing = (file: string): Promise<string> =>
        admin.refusal(`passwords import ${file} --store PERSON_DIRECTORY`);
      expect(await importing(join(folder, 'absent'))).toContain('ENOENT');
      await writeFile(join(folder, 'plain.csv'), 'carl.customer,hash\n');
      expect(await importing(join(folder, 'plain.csv'))).toContain('names no column userName');
    });
  });
});
