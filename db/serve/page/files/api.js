// Requests to the server of the page.

export class ApiError extends Error {
  constructor(form) {
    super(form.error);
    this.status = form.status;
    this.column = form.column;
  }
}

async function read(response) {
  const form = await response.json();
  if (!response.ok) throw new ApiError(form);
  return form;
}

// get asks for /api/NAME; parameters that are undefined are left out.
export async function get(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, v]) => v !== undefined && v !== "" && v !== false);
  return read(await fetch(`/api/${name}?${new URLSearchParams(given)}`, { signal }));
}

export async function send(file, member) {
  return read(await fetch(`/api/uploads?${new URLSearchParams({ name: file.name, member })}`, { method: "POST", body: file }));
}

// latest returns a function that runs the newest of the tasks that it is given: the one
// before is aborted, and what that still finds is dropped.
export function latest() {
  let current = null;
  return async (task) => {
    const before = current;
    const mine = (current = new AbortController());
    const begun = task(mine.signal);
    before?.abort();
    try {
      const result = await begun;
      return mine === current ? { result } : {};
    } catch (error) {
      return mine === current && error.name !== "AbortError" ? { error } : {};
    }
  };
}
