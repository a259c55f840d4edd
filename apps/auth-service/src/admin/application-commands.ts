import { personaNames } from '@platform/personas';
import { changeApplicationSecrets } from '../applications/change-application-secrets.query';
import { createApplication } from '../applications/create-application.query';
import { enableApplication } from '../applications/enable-application.query';
import type { ListedApplication } from '../applications/list-applications.query';
import { listApplications } from '../applications/list-applications.query';
import { newSharedSecret } from '../applications/new-secret';
import { columns } from './columns';
import type { Command, CommandGroup } from './command';
import { RefusedError, UsageError } from './command';
import { addSecret, expireSecret } from './application-secrets';
import { hasFlag, optionText, parseCount, parseDuration, parseFlows, parsePersonas } from './option-values';

const APPLICATION_KEY = { name: 'application-key', meaning: 'the key that the application sends' };
const MAX_VERSION = 1_000_000;

const list: Command = {
  name: 'list',
  summary: 'List the applications',
  positionals: [],
  options: [],
  prepare:
    () =>
    async ({ dataSource }) => {
      const applications = await listApplications(dataSource);
      const head = ['APPLICATION KEY', 'STATE', 'PERSONAS', 'REFRESH', 'FLOWS', 'LIVE SECRETS'];
      return { json: applications, text: columns([head, ...applications.map(row)]) };
    },
};

function row(application: ListedApplication): string[] {
  const live = application.secrets
    .filter(({ isLive }) => isLive)
    .map(({ version, expiresAt }) => `${version}${expiresAt === null ? '' : ` (until ${expiresAt})`}`);
  return [
    application.applicationKey,
    application.enabled ? 'enabled' : 'disabled',
    personaNames(application.allowedPersonas).join(',') || '-',
    application.allowRefresh ? 'yes' : 'no',
    application.allowedFlows.join(',') || '-',
    live.join(', ') || '-',
  ];
}

const create: Command = {
  name: 'create',
  summary: 'Register an application and show its secret, once',
  positionals: [{ name: 'application-key', meaning: 'letters, digits, "_", "." and "-", at most 100' }],
  options: [
    {
      name: 'personas',
      value: 'names',
      meaning: 'personas it may ask for, e.g. Customer,Owner; or all (required)',
    },
    { name: 'flows', value: 'names', meaning: 'flows it may use, e.g. trust,bearer; or all (required)' },
    { name: 'allow-refresh', meaning: 'let it hold refresh tokens; needs the flow refresh too' },
  ],
  prepare: (input) => {
    const [applicationKey = ''] = input.positionals;
    if (!/^[A-Za-z\d][\w.-]{0,99}$/.test(applicationKey))
      throw new UsageError('an application key holds letters, digits, "_", "." and "-", at most 100');
    const allowedPersonas = parsePersonas(required(optionText(input, 'personas'), '--personas'));
    const allowedFlows = parseFlows(required(optionText(input, 'flows'), '--flows'));
    const allowRefresh = hasFlag(input, 'allow-refresh');
    const application = { applicationKey, allowedPersonas, allowedFlows, allowRefresh };
    return async ({ dataSource, encryptionKey }) => {
      const { sharedSecret, sealed } = newSharedSecret(applicationKey, encryptionKey());
      if (!(await createApplication(dataSource, application, sealed)))
        throw new RefusedError(`there is an application "${applicationKey}" already`);
      return {
        json: { ...application, version: 1, sharedSecret },
        text: `Created ${applicationKey}. Its secret, shown only now:\n${sharedSecret}`,
      };
    };
  },
};

const rotateSecret: Command = {
  name: 'rotate-secret',
  summary: 'Give an application a second secret and show it, once',
  positionals: [APPLICATION_KEY],
  options: [
    {
      name: 'previous-expires-in',
      value: 'duration',
      meaning: 'let the secret before it expire then, e.g. 24h; it stays valid unless given',
    },
    { name: 'force', meaning: 'although two secrets are valid: the older one expires at once' },
  ],
  notes:
    'The two newest secrets are valid side by side, so that the application can change over without an outage.',
  prepare: (input) => {
    const [applicationKey = ''] = input.positionals;
    const expiry = optionText(input, 'previous-expires-in');
    const previousExpiresInSeconds = expiry === undefined ? null : parseDuration(expiry);
    const plan = { applicationKey, previousExpiresInSeconds, force: hasFlag(input, 'force') };
    return async ({ dataSource, encryptionKey }) => {
      const { sharedSecret, sealed } = newSharedSecret(applicationKey, encryptionKey());
      const { version, expired } = await changeApplicationSecrets(dataSource, applicationKey, (secrets) =>
        addSecret(secrets, sealed, plan),
      );
      return {
        json: { applicationKey, version, sharedSecret, expired },
        text: [
          `Version ${version} of the secret of ${applicationKey}, shown only now:`,
          sharedSecret,
          ...expired.map((each) => `Version ${each.version} expires at ${each.expiresAt.toISOString()}.`),
        ].join('\n'),
      };
    };
  },
};

const expireSecretCommand: Command = {
  name: 'expire-secret',
  summary: 'Let one version of an application’s secret expire',
  positionals: [APPLICATION_KEY, { name: 'version', meaning: 'the version that applications list shows' }],
  options: [
    { name: 'in', value: 'duration', meaning: 'when, e.g. 30m; at once unless given' },
    { name: 'force', meaning: 'although the application has no other secret' },
  ],
  prepare: (input) => {
    const [applicationKey = '', versionText = ''] = input.positionals;
    const version = parseCount('<version>', versionText, MAX_VERSION);
    const inSeconds = parseDuration(optionText(input, 'in') ?? '0s');
    const plan = { applicationKey, version, inSeconds, force: hasFlag(input, 'force') };
    return async ({ dataSource }) => {
      const expiresAt = await changeApplicationSecrets(dataSource, applicationKey, (secrets) =>
        expireSecret(secrets, plan),
      );
      return {
        json: { applicationKey, version, expiresAt },
        text: `Version ${version} of the secret of ${applicationKey} expires at ${expiresAt.toISOString()}.`,
      };
    };
  },
};

function switchCommand(name: 'enable' | 'disable', summary: string): Command {
  return {
    name,
    summary,
    positionals: [APPLICATION_KEY],
    options: [],
    prepare:
      ({ positionals: [applicationKey = ''] }) =>
      async ({ dataSource }) => {
        const enabled = name === 'enable';
        if (!(await enableApplication(dataSource, applicationKey, enabled)))
          throw new RefusedError(`there is no application "${applicationKey}"`);
        return { json: { applicationKey, enabled }, text: `${applicationKey} is ${name}d.` };
      },
  };
}

function required(value: string | undefined, name: string): string {
  if (value !== undefined) return value;
  throw new UsageError(`${name} is required. See: applications create --help`);
}

/** Applications: who may ask for tokens. */
export const APPLICATION_COMMANDS: CommandGroup = {
  name: 'applications',
  summary: 'Applications: the callers that may ask for tokens.',
  commands: [
    list,
    create,
    rotateSecret,
    expireSecretCommand,
    switchCommand('disable', 'Refuse an application from now on'),
    switchCommand('enable', 'Accept a disabled application again'),
  ],
};
