% Writes octave_v6.mat and octave_v7.mat; README.md says what is in them.
x = 10 * (0:4)' + (0:2);
s = struct();
s.double = x + .25;
s.single = single(x + .25);
for c = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
  s.(c{1}) = feval(c{1}, x);
end
s.logical = x > 20;
[i, j] = ndgrid(0:4, 0:3);
s.sparse = sparse((mod(i + j, 3) == 0) .* (10 * i + j + .5));
s.row = 0:2;
s.none = zeros(0, 3);
s.text = "text";
s.cell = {1, "two"};
s.complex = x + 1i;
s.cube = zeros(2, 2, 2);
save("-v6", "octave_v6.mat", "-struct", "s");
save("-v7", "octave_v7.mat", "-struct", "s");
