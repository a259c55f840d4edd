import { personaNames } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { mayHaveAdministrators } from '../applications/application';
import type { Application } from '../applications/application';
import { ApplicationsRepository } from '../applications/applications.repository';
import type { ChangedSecrets, ListedApplication } from '../applications/applications.repository';
import { isReturnUrl } from '../openid/application-return';
import { expireSecret, newSharedSecret, rotateSecret } from './application-secrets';
import {
  RefusedError,
  columns,
  countUpTo,
  parseDuration,
  parseFlows,
  parsePersonas,
  parseSubjects,
} from './command';
import type { CommandResult, RunCommand, Subjects } from './command';
import { addDiscardSecret } from './discard-secret-command';

const APPLICATION_KEY = ['<application-key>', 'the key that the application sends'] as const;
const MAX_VERSION = 1_000_000;
const ADMINISTRATORS = 'let its tokens carry the role CustomerGlobalAdministrator';
const CONFIDENTIAL = 'require its secret in every flow';
const SUBJECTS = [
  '--subjects <names>',
  'the only users for whom it may get tokens, e.g. svc.platform; or anybody',
  parseSubjects,
] as const;

/** Adds the commands on applications, the callers that may request tokens. */
export function addApplicationCommands(program: Command, run: RunCommand): void {
  const group = program
    .command('applications')
    .description('Applications: the callers that may request tokens.');
  addList(group, run);
  addCreate(group, run);
  addUpdate(group, run);
  addRotateSecret(group, run);
  addExpireSecret(group, run);
  addDiscardSecret(group, run);
  addReturnAddresses(group, run);
  addSwitch(group, run, 'disable', 'Refuse an application from now on');
  addSwitch(group, run, 'enable', 'Accept a disabled application again');
}

function addList(group: Command, run: RunCommand): void {
  group
    .command('list')
    .description('List the applications')
    .action(() =>
      run(async ({ dataSource }) => {
        const applications = await new ApplicationsRepository(dataSource).list();
        const head = [
          'APPLICATION KEY',
          'STATE',
          'PERSONAS',
          'ADMINISTRATORS',
          'REFRESH',
          'CONFIDENTIAL',
          'FLOWS',
          'SUBJECTS',
          'LIVE SECRETS',
        ];
        return { json: applications, text: columns([head, ...applications.map(row)]) };
      }),
    );
}

function row(application: ListedApplication): string[] {
  const live = application.secrets
    .filter(({ isLive }) => isLive)
    .map(({ version, expiresAt }) => `${version}${expiresAt === null ? '' : ` (until ${expiresAt})`}`);
  return [
    application.applicationKey,
    application.enabled ? 'enabled' : 'disabled',
    personaNames(application.allowedPersonas).join(',') || '-',
    mayHaveAdministrators(application) ? 'yes' : 'no',
    application.allowRefresh ? 'yes' : 'no',
    application.confidential ? 'yes' : 'no',
    application.allowedFlows.join(',') || '-',
    application.allowedSubjects?.join(',') ?? 'anybody',
    live.join(', ') || '-',
  ];
}

interface CreateOptions {
  personas: Personas;
  flows: string[];
  allowAdministrators?: true;
  allowRefresh?: true;
  confidential?: true;
  subjects?: Subjects;
}

function addCreate(group: Command, run: RunCommand): void {
  group
    .command('create')
    .description('Register an application and show its secret, once')
    .argument('<application-key>', 'letters, digits, "_", "." and "-", at most 100', parseApplicationKey)
    .requiredOption(
      '--personas <names>',
      'personas it may request, e.g. Customer,Owner; or all',
      parsePersonas,
    )
    .requiredOption('--flows <names>', 'flows it may use, e.g. trust,bearer; or all', parseFlows)
    .option(
      '--administrators, --allow-administrators',
      `${ADMINISTRATORS} even if it may not request every persona`,
    )
    .option('--allow-refresh', 'let it hold refresh tokens; needs the flow refresh too')
    .option('--confidential', CONFIDENTIAL)
    .option(...SUBJECTS)
    .action((applicationKey: string, options: CreateOptions) =>
      run(async ({ dataSource, secretBox, show }) => {
        const application = newApplication(applicationKey, options);
        const { sharedSecret, sealed } = newSharedSecret(applicationKey, secretBox());
        const result = {
          json: { ...application, version: 1, sharedSecret },
          text: `Created ${applicationKey}. Its secret, shown only now:\n${sharedSecret}`,
        };
        // Shows the secret before the commit: a secret that could not be printed must not become valid.
        const taken = await new ApplicationsRepository(dataSource).create(application, sealed, () =>
          show(result),
        );
        if (taken !== null) throw new RefusedError(`there is an application "${taken}" already`);
        return result;
      }),
    );
}

function newApplication(applicationKey: string, options: CreateOptions): Application {
  return {
    applicationKey,
    allowedPersonas: options.personas,
    allowedFlows: options.flows,
    allowedSubjects: options.subjects?.names ?? null,
    allowAdministrators: options.allowAdministrators ?? false,
    allowRefresh: options.allowRefresh ?? false,
    confidential: options.confidential ?? false,
  };
}

function parseApplicationKey(text: string): string {
  if (/^[A-Za-z\d][\w.-]{0,99}$/.test(text)) return text;
  throw new InvalidArgumentError('an application key holds letters, digits, "_", "." and "-", at most 100');
}

interface UpdateOptions {
  personas?: Personas;
  flows?: string[];
  administrators?: boolean;
  refresh?: boolean;
  confidential?: boolean;
  subjects?: Subjects;
}

function addUpdate(group: Command, run: RunCommand): void {
  group
    .command('update')
    .summary('Change what an application may do')
    .description(
      'Change what an application may do, from its next request on. Options that are not given leave their setting unchanged.',
    )
    .argument(...APPLICATION_KEY)
    .option('--personas <names>', 'personas it may request, e.g. Customer,Owner; or all', parsePersonas)
    .option('--flows <names>', 'flows it may use, e.g. trust,bearer; or all', parseFlows)
    .option(
      '--allow-administrators, --administrators',
      `${ADMINISTRATORS} even if it may not request every persona`,
    )
    .option('--no-administrators', 'do not let them, unless it may request every persona')
    .option('--refresh', 'let it hold refresh tokens; needs the flow refresh too')
    .option('--no-refresh', 'let it hold none; its existing ones stop working')
    .option('--confidential', CONFIDENTIAL)
    .option('--no-confidential', 'let users get tokens through it without its secret')
    .option(...SUBJECTS)
    .action((applicationKey: string, options: UpdateOptions) => {
      const { personas, flows, administrators, refresh, confidential, subjects } = options;
      const change = {
        ...(personas === undefined ? {} : { allowedPersonas: personas }),
        ...(flows === undefined ? {} : { allowedFlows: flows }),
        ...(administrators === undefined ? {} : { allowAdministrators: administrators }),
        ...(refresh === undefined ? {} : { allowRefresh: refresh }),
        ...(confidential === undefined ? {} : { confidential }),
        ...(subjects === undefined ? {} : { allowedSubjects: subjects.names }),
      };
      if (Object.keys(change).length === 0)
        throw new InvalidArgumentError('name at least one option to change');
      return run(async ({ dataSource }) => {
        await update(dataSource, applicationKey, change);
        return { json: { applicationKey, ...change }, text: `${applicationKey} is changed.` };
      });
    });
}

async function update(
  dataSource: DataSource,
  applicationKey: string,
  change: Parameters<ApplicationsRepository['update']>[1],
): Promise<void> {
  if (!(await new ApplicationsRepository(dataSource).update(applicationKey, change)))
    throw new RefusedError(`there is no application "${applicationKey}"`);
}

function addRotateSecret(group: Command, run: RunCommand): void {
  group
    .command('rotate-secret')
    .description(
      'Give an application a second secret and show it, once. The two newest secrets are valid side by side, so that the ' +
        'application can change over without an outage.',
    )
    .summary('Give an application a second secret and show it, once')
    .argument(...APPLICATION_KEY)
    .option(
      '--previous-expires-in <duration>',
      'let the previous secret expire after this time, e.g. 24h; by default it stays valid',
      parseDuration,
    )
    .option('--force', 'even if two secrets are valid: the older one expires at once')
    .action((applicationKey: string, options: { previousExpiresIn?: number; force?: true }) =>
      run(async ({ dataSource, secretBox, show }) => {
        const { previousExpiresIn: previousExpiresInSeconds = null, force = false } = options;
        const { sharedSecret, sealed } = newSharedSecret(applicationKey, secretBox());
        const rotation = { applicationKey, sealed, previousExpiresInSeconds, force };
        let result: CommandResult | null = null;
        await new ApplicationsRepository(dataSource).changeSecrets(
          applicationKey,
          (unexpired) => rotateSecret(unexpired, rotation),
          // Shows the secret before the commit, as when an application is created.
          (changed) => show((result = rotated(applicationKey, sharedSecret, changed))),
        );
        return result!;
      }),
    );
}

function rotated(
  applicationKey: string,
  sharedSecret: string,
  { added: version, expired }: ChangedSecrets,
): CommandResult {
  return {
    json: { applicationKey, version, sharedSecret, expired },
    text: [
      `Version ${String(version)} of the secret of ${applicationKey}, shown only now:`,
      sharedSecret,
      ...expired.map((each) => `Version ${each.version} expires at ${each.expiresAt.toISOString()}.`),
    ].join('\n'),
  };
}

function addExpireSecret(group: Command, run: RunCommand): void {
  group
    .command('expire-secret')
    .description('Let one version of an application’s secret expire')
    .argument(...APPLICATION_KEY)
    .argument('<version>', 'the version that applications list shows', countUpTo(MAX_VERSION))
    .option('--in <duration>', 'after this time, e.g. 30m; by default at once', parseDuration, 0)
    .option('--force', 'even if it leaves the application without a secret, or postpones an expiry')
    .action((applicationKey: string, version: number, options: { in: number; force?: true }) =>
      run(async ({ dataSource }) => {
        const plan = { applicationKey, version, inSeconds: options.in, force: options.force ?? false };
        const { expired } = await new ApplicationsRepository(dataSource).changeSecrets(
          applicationKey,
          (unexpired) => expireSecret(unexpired, plan),
        );
        const { expiresAt } = expired[0]!;
        return {
          json: { applicationKey, version, expiresAt },
          text: `Version ${version} of the secret of ${applicationKey} expires at ${expiresAt.toISOString()}.`,
        };
      }),
    );
}

function addReturnAddresses(group: Command, run: RunCommand): void {
  group
    .command('set-return-addresses')
    .summary('Set the addresses to which a single sign-on may return')
    .description(
      'Replace the addresses to which a single sign-on may return for an application; without addresses it may return nowhere. ' +
        'The application also needs the flow code.',
    )
    .argument(...APPLICATION_KEY)
    .argument(
      '[addresses...]',
      'https, or http on the loopback; compared character by character',
      collectReturnUrl,
    )
    .action((applicationKey: string, returnUrls: readonly string[] = []) =>
      run(async ({ dataSource }) => {
        await update(dataSource, applicationKey, { returnUrls: [...returnUrls] });
        const where = returnUrls.length === 0 ? 'nowhere' : `to ${returnUrls.join(', ')}`;
        return {
          json: { applicationKey, returnUrls },
          text: `A single sign-on may return ${where} for ${applicationKey}.`,
        };
      }),
    );
}

function collectReturnUrl(text: string, before: readonly string[] = []): string[] {
  if (isReturnUrl(text)) return [...before, text];
  throw new InvalidArgumentError(
    `"${text}" is not a return address: write it as browsers normalise it, with https (or http on the loopback) and without a fragment`,
  );
}

function addSwitch(group: Command, run: RunCommand, name: 'enable' | 'disable', description: string): void {
  group
    .command(name)
    .description(description)
    .argument(...APPLICATION_KEY)
    .action((applicationKey: string) =>
      run(async ({ dataSource }) => {
        const enabled = name === 'enable';
        await update(dataSource, applicationKey, { enabled });
        return { json: { applicationKey, enabled }, text: `${applicationKey} is ${name}d.` };
      }),
    );
}
