/** The sign-in form of one interaction, as HTML. `complaint` is shown above the form. */
export function loginPage(interactionId: string, complaint: string | null): string {
  const notice = complaint === null ? '' : `<p role="alert">${escapeHtml(complaint)}</p>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign in</title></head>
<body>
<h1>Development identity provider</h1>
${notice}
<form method="post" action="/interaction/${escapeHtml(interactionId)}/login">
<label>User <input name="login" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${String(character.codePointAt(0))};`);
}
