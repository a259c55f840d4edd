// Allowed dependencies between projects; docs/architecture.md has the same table in words.

/** Packages that clients, contracts and domains may not import. */
const FRAMEWORKS = ['@nestjs/*', '@golevelup/*', 'typeorm', 'amqplib', 'fastify', 'nestjs-*'];

const PLATFORM = 'type:platform';
const CONTRACT = 'type:contract';
const DOMAIN = 'type:domain';
const CLIENT = 'type:client';
const TESTING = 'type:testing';
const TOOL = 'type:tool';
const VERIFICATION = 'type:verification';

const scopes = ['auth', 'settings', 'task', 'tools'].map((scope) => ({
  sourceTag: `scope:${scope}`,
  onlyDependOnLibsWithTags: [`scope:${scope}`, 'scope:shared'],
}));

const types = (extra: string[]) => [
  { sourceTag: 'scope:shared', onlyDependOnLibsWithTags: ['scope:shared'] },
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: [PLATFORM, CONTRACT, DOMAIN, CLIENT, ...extra] },
  { sourceTag: PLATFORM, onlyDependOnLibsWithTags: [PLATFORM, CONTRACT, DOMAIN, ...extra] },
  {
    sourceTag: CLIENT,
    onlyDependOnLibsWithTags: [CONTRACT, DOMAIN, ...extra],
    bannedExternalImports: FRAMEWORKS,
  },
  { sourceTag: CONTRACT, onlyDependOnLibsWithTags: [DOMAIN, ...extra], bannedExternalImports: FRAMEWORKS },
  { sourceTag: DOMAIN, onlyDependOnLibsWithTags: [DOMAIN, ...extra], bannedExternalImports: FRAMEWORKS },
  { sourceTag: TESTING, onlyDependOnLibsWithTags: [TOOL, PLATFORM, CONTRACT, DOMAIN] },
  { sourceTag: 'type:e2e', onlyDependOnLibsWithTags: [TESTING, TOOL, CONTRACT, CLIENT] },
  {
    sourceTag: VERIFICATION,
    onlyDependOnLibsWithTags: [VERIFICATION, TOOL, CONTRACT, DOMAIN, CLIENT, ...extra],
  },
  { sourceTag: TOOL, onlyDependOnLibsWithTags: [TOOL, CONTRACT, DOMAIN, CLIENT, ...extra] },
];

/** Constraints for production code. */
export const productionConstraints = [...scopes, ...types([])];
/** Constraints for specs and test folders: they may import the testing lib as well. */
export const testConstraints = [...scopes, ...types([TESTING])];
