import { createProjectGraphAsync } from '@nx/devkit';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';
import { productionConstraints, testConstraints } from './tools/boundaries/dependency-constraints.ts';
import { housePlugin } from './tools/boundaries/rules/plugin.ts';

// house/module-boundaries reads the graph from Nx's cache.
await createProjectGraphAsync({ exitOnError: true });

const TESTS = [
  '**/*.spec.ts',
  '**/*.integration-spec.ts',
  '**/*.e2e-spec.ts',
  '**/test/**/*.ts',
  'libs/testing/**/*.ts',
];

// libs/testing uses these libraries, and their own tests use libs/testing. No production code may import
// libs/testing.
const boundaries = (depConstraints) => [
  'error',
  {
    ignoredCircularDependencies: [
      ['testing', 'service-defaults'],
      ['testing', 'access-tokens'],
      ['testing', 'open-api'],
    ],
    depConstraints,
  },
];

const SYNTAX = [
  {
    selector: 'SpreadElement[argument.type=/^(Object|Array)Expression$/]',
    message: 'Write the members out instead of spreading a literal.',
  },
  { selector: 'ExportAllDeclaration', message: 'Export by name: a reader must see what this file exports.' },
  {
    selector: 'ExportDefaultDeclaration',
    message: 'Export by name, so that it has the same name everywhere.',
  },
  {
    selector: 'CatchClause[param=null]',
    message: 'Name the error: translate a known one (keep its cause) or compensate; never swallow.',
  },
  {
    selector: 'MethodDefinition[kind="constructor"] > FunctionExpression[params.length>6]',
    message: 'More than six dependencies: split the class, or find the concept that groups them.',
  },
];

const NO_SLEEP = 'No sleeps in tests: use eventually(), or a clock that the test sets.';
const NO_SKIP =
  'A focused, skipped or planned test hides the others or itself: use testsThatNeed(), which fails where all tests must run.';

const TEST_SYNTAX = [
  ...SYNTAX,
  {
    selector: 'NewExpression[callee.name="Promise"] CallExpression[callee.name="setTimeout"]',
    message: NO_SLEEP,
  },
  // The dot matches the slash, which would end the pattern.
  { selector: 'ImportDeclaration[source.value=/^(node:)?timers.promises$/]', message: NO_SLEEP },
  { selector: 'ImportExpression[source.value=/^(node:)?timers.promises$/]', message: NO_SLEEP },
  { selector: 'CallExpression[callee.name="promisify"] > Identifier[name="setTimeout"]', message: NO_SLEEP },
  {
    selector:
      'MemberExpression[object.name=/^(it|test|describe)$/][property.name=/^(only|skip|todo|failing)$/]',
    message: NO_SKIP,
  },
  { selector: 'CallExpression[callee.name=/^(xit|xtest|xdescribe|fit|fdescribe)$/]', message: NO_SKIP },
  {
    selector:
      'CallExpression[callee.name=/^(it|test)$/] > ArrowFunctionExpression > BlockStatement > IfStatement ReturnStatement',
    message:
      'A test that returns early counts as passed: skip it with testsThatNeed(), or expect() something.',
  },
  {
    selector: 'Program > ExpressionStatement > CallExpression[callee.name="afterAll"]',
    message:
      'Within describe(): at the top level it runs after the check of the services’ logs, and services still log while they stop.',
  },
];

const ENVIRONMENT = {
  selector: 'MemberExpression[object.name="process"][property.name="env"]',
  message: 'The environment is read only in config.ts and main.ts.',
};

export default tseslint.config(
  {
    ignores: ['**/node_modules/', 'dist/', 'coverage/', '.nx/', '.platform/', 'test-results/', '**/*.cjs'],
  },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked, prettier],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { house: housePlugin },
    rules: {
      'house/module-boundaries': boundaries(productionConstraints),
      'house/plain-file-is-pure': 'error',
      'house/telling-names': 'error',
      'house/todo-has-reason': 'error',
      'house/no-wall-clock': 'error',
      'house/no-import-cycle': 'error',
      'house/no-folder-cycle': 'error',
      'max-lines': ['error', { max: 450 }],
      'max-lines-per-function': ['error', { max: 60 }],
      // Prettier decides on the width of code.
      'max-len': [
        'error',
        { code: 1_000, comments: 110, ignoreUrls: true, ignoreStrings: true, ignoreTemplateLiterals: true },
      ],
      'no-restricted-syntax': ['error', ...SYNTAX],
      'no-console': 'error',
      eqeqeq: 'error',
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'separate-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      // Nest modules are classes without members.
      '@typescript-eslint/no-extraneous-class': 'off',
    },
  },
  {
    files: ['apps/*/src/**/*.ts', 'libs/*/src/**/*.ts'],
    ignores: [
      '**/config.ts',
      '**/main.ts',
      '**/migrate.ts',
      '**/install.ts',
      '**/load-development-identities.ts',
      ...TESTS,
    ],
    rules: { 'no-restricted-syntax': ['error', ...SYNTAX, ENVIRONMENT] },
  },
  {
    files: [
      'libs/time/**/*.ts',
      'tools/**/*.ts',
      'verification/**/*.ts',
      'apps/platform-e2e/**/*.ts',
      ...TESTS,
    ],
    rules: { 'house/no-wall-clock': 'off' },
  },
  {
    // Clients have no dependencies: their clock is an option whose default is the machine's.
    files: ['libs/auth-client/src/**/*.ts', 'libs/settings-client/src/**/*.ts'],
    rules: { 'house/no-wall-clock': 'off' },
  },
  // A migration is a list of statements, to be read from top to bottom.
  { files: ['**/migrations/**/*.ts'], rules: { 'max-lines-per-function': 'off' } },
  { files: ['tools/**/*.ts', 'verification/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: TESTS,
    rules: {
      'house/module-boundaries': boundaries(testConstraints),
      'max-lines-per-function': 'off',
      'no-restricted-syntax': ['error', ...TEST_SYNTAX],
      // supertest bodies and SQL rows are untyped on purpose: the assertion is the type.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
    },
  },
);
